/** The second agent: attaches to the lease from stdin, finishes the work, and releases the browser. */
import { text } from 'node:stream/consumers';
import { BrowserPool } from 'pooled-browser';
import { attachBrowser } from 'pooled-browser/playwright';

const pool = new BrowserPool('default');
const lease = await attachBrowser(await text(process.stdin), { pool });
console.error(`second: found ${await lease.page.title()}`);

const { released } = await lease.release();
console.error(`second: done, the browser was ${released}`);
await pool.close();
