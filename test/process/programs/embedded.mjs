// Leases a browser from its own local pool, and waits for its end. Used by the tests in the parent folder.
import { BrowserPool } from '../../../dist/index.js';
import { startLocalPool } from '../../../dist/local.js';
import { leaseBrowser } from '../../../dist/puppeteer.js';

const local = await startLocalPool();
const pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });
await leaseBrowser(pool);
process.stdout.write('leased\n');
if (process.argv[2] === 'exit') process.exit(7);
