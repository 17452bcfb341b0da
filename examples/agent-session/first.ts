/** The first agent: leases a browser, begins the work, and hands the lease over on its standard output. */
import { BrowserPool, ConnectionDroppedError } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

const [address = 'data:text/html,<title>Address</title>', payment = 'data:text/html,<title>Payment</title>'] =
  process.argv.slice(2);

const pool = new BrowserPool('default');
const browser = await leaseBrowser(pool, {
  name: `checkout-${process.pid}`,
  reconnect: true,
  onEvent: ({ type }) => {
    if (type === 'connection-dropped' || type === 'reconnected') console.error(`first: ${type}`);
  },
});
for (const url of [address, payment]) {
  const title = await again(() =>
    browser.use(async ({ page }) => {
      await page.goto(url);
      return page.title();
    }),
  );
  console.error(`first: opened ${title}`);
}

// Whoever has the secret can drive the browser: through a pipe, never as an argument.
const { secret } = await browser.detach();
process.stdout.write(secret);
console.error('first: handed the browser over');
await pool.close();

/** The library repeats nothing that a dropped connection has interrupted: opening a page may be done twice. */
async function again<Value>(step: () => Promise<Value>): Promise<Value> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof ConnectionDroppedError)) throw error;
    return step();
  }
}
