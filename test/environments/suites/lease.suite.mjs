import { BrowserPool } from 'pooled-browser';
import { mapPooledBrowsers, withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';

const PAGE = 'data:text/html,<title>Here</title>';

async function titleOf({ page }) {
  await page.goto(PAGE);
  return page.title();
}

test('leases a local browser, and a local browser for a map', async () => {
  const pool = new BrowserPool('mine', { baseUrl: 'local', local: { size: 1, owner: process.pid } });
  const { signal } = new AbortController();
  const { value } = await withPooledBrowser(pool, titleOf, { signal });
  const { done } = await mapPooledBrowsers(pool, new Set(['input']), titleOf);
  await pool.close();
  expect({ value, done }).toEqual({ value: 'Here', done: 1 });
});

test('leases a browser at its debugging port', async () => {
  const pool = new BrowserPool('mine', { service: cdp(process.env.CDP_URL) });
  const run = await withPooledBrowser(pool, titleOf);
  await pool.close();
  expect(run).toMatchObject({ value: 'Here', cleanupErrors: [] });
});
