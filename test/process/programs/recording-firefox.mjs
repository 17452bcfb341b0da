// Records a lease over WebDriver BiDi alone, and waits for a signal. The environment names the service.
import { withPooledBrowser } from 'pooled-browser/puppeteer';

const [folder] = process.argv.slice(2);
await withPooledBrowser(
  'default',
  async ({ page }) => {
    await page.goto('data:text/html,<title>Shop</title><h1>Shop</h1>');
    await page.waitForSelector('h1');
    // Pictures are taken at a tenth of the time.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    console.log('shown');
    await new Promise(() => {});
  },
  { protocol: 'bidi', name: 'stopped', replays: 'record', recording: { by: 'client', folder } },
);
