// Records a lease of a browser at a fixed address, and ends in the given way: a signal, exit, an uncaught error.
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';

const [url, folder, how] = process.argv.slice(2);
const pool = new BrowserPool('shop', { service: cdp(url) });
const recording = { folder };
const run = await withPooledBrowser(
  pool,
  async ({ page }) => {
    await page.goto('data:text/html,<h1>Shop</h1>');
    await page.waitForTimeout(500);
    await page.evaluate(() => (document.body.style.background = 'teal'));
    await page.waitForTimeout(500);
    console.log('shown');
    if (how === 'return') return;
    if (how === 'exit') process.exit(3);
    if (how === 'throw')
      setTimeout(() => {
        throw new Error('uncaught');
      });
    await new Promise(() => {});
  },
  { replays: 'record', replaysTimeout: 120_000, recording },
);
console.log(run.replayStatus, run.cleanupErrors.length);
await pool.close();
