import { BrowserPool } from 'pooled-browser';
import { mapPooledBrowsers, withPooledBrowser } from 'pooled-browser/playwright';
import { cdp } from 'pooled-browser/services';

const PAGE = 'data:text/html,<title>Here</title>';

export async function titleOf({ page }) {
  await page.goto(PAGE);
  return page.title();
}

test('leases a local browser, and a local browser for a map', async () => {
  const owner = Number(process.env.LOCAL_OWNER || process.pid);
  const pool = new BrowserPool('mine', { baseUrl: 'local', local: { size: 1, owner } });
  const { signal } = new AbortController();
  const { value } = await withPooledBrowser(pool, titleOf, { signal });
  const { succeeded } = await mapPooledBrowsers(pool, new Set(['input']), titleOf);
  await pool.close();
  expect({ value, succeeded }).toEqual({ value: 'Here', succeeded: 1 });
});

test('leases a browser at its debugging port, and releases it with fake timers', async () => {
  const timers = import.meta.jest ?? globalThis.vi;
  const pool = new BrowserPool('mine', { service: cdp(process.env.CDP_URL) });
  // Until Playwright has connected, it needs the timers.
  const run = await withPooledBrowser(pool, async (lease) => {
    const title = await titleOf(lease);
    timers.useFakeTimers();
    return title;
  });
  await pool.close();
  timers.useRealTimers();
  expect(run).toMatchObject({ value: 'Here', released: 'reused' });
});
