// Fails in the callback of a lease, with an error of several lines that contains the access token.
import { BrowserPool, withPooledBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

const pool = new BrowserPool('test');
const fail = () => {
  throw new Error(`first line\nsecond line with ${process.env.BROWSER_POOL_ACCESS_TOKEN}`);
};
await withPooledBrowser(pool, fail, { connector, replays: 'off' }).catch(() => {});
await pool.close();
