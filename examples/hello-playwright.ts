/** Leases a browser, drives it with Playwright, and releases it. */
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { withPooledBrowser } from 'pooled-browser/playwright';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });

const { value, released, replays } = await withPooledBrowser(pool, async ({ page }) => {
  await page.goto(
    'data:text/html,<title>Hello</title><button onclick="this.textContent=`Clicked`">Click</button>',
  );
  await page.getByRole('button').click();
  return `${await page.title()}, ${await page.getByRole('button').innerText()}`;
});

console.log(`Playwright read: ${value}`);
console.log(`The browser was ${released}; replays: ${replays.length}`);
