import nock from 'nock';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';

nock.disableNetConnect();
const pool = new BrowserPool('mine', { service: cdp(process.env.CDP_URL) });
await withPooledBrowser(pool, () => 'never').catch((error) => console.log(error.message));
await pool.close();
