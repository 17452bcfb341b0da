// Leases a browser with the pool options on stdin, which no other process can read, and ends as the test says. Used by
// ../behind-proxy.more.test.ts.
import { once } from 'node:events';
import { BrowserPool, leaseBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

const [options] = await once(process.stdin, 'data');
const pool = new BrowserPool('test', JSON.parse(String(options)));
await leaseBrowser(pool, { connector, replays: 'off', releaseOnCrash: true });
process.stdout.write('leased\n');
await once(process.stdin, 'data');
process.exit(7);
