/** Leases a browser until the end of a block, for work that does not fit into one callback. */
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { leaseBrowser } from 'pooled-browser/playwright';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

{
  await using lease = await leaseBrowser(pool, {
    context: 'new',
    onEvent: ({ type }) => console.log(`- ${type}`),
  });
  await lease.page.goto('data:text/html,<title>Leased until the end of the block</title>');
  console.log(`Playwright read: ${await lease.page.title()}`);
} // Here the page is closed and the browser is released, even after an exception.

console.log('The browser is back in its pool.');
