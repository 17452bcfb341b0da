/** The first agent: leases a browser, does half of the work, and writes the lease to stdout. */
import { BrowserPool, ConnectionDroppedError } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

const [address = 'data:text/html,<title>Address</title>', payment = 'data:text/html,<title>Payment</title>'] =
  process.argv.slice(2);

const pool = new BrowserPool('default');
const lease = await leaseBrowser(pool, {
  name: `checkout-${process.pid}`,
  reconnect: 'eager',
  onEvent: ({ type }) => {
    if (type === 'connection-dropped' || type === 'reconnected') console.error(`first: ${type}`);
  },
});
for (const url of [address, payment]) {
  const title = await again(() =>
    lease.use(async ({ page }) => {
      await page.goto(url);
      return page.title();
    }),
  );
  console.error(`first: opened ${title}`);
}

// The secret gives control of the browser, so it goes through a pipe and never into an argument.
const { secret } = await lease.detach();
process.stdout.write(secret);
console.error('first: detached the browser');
await pool.close();

/** Repeats a step that a dropped connection has interrupted. The library does not, because not every step may run twice. */
async function again<Value>(step: () => Promise<Value>): Promise<Value> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof ConnectionDroppedError)) throw error;
    return step();
  }
}
