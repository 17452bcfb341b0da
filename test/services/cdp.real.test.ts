import { expect, it, vi } from 'vitest';
import { BrowserLostError, BrowserPool } from '../../src/index.js';
import { attachBrowser, leaseBrowser, withPooledBrowser } from '../../src/playwright.js';
import { cdp } from '../../src/services.js';
import { startChromium } from '../support/chromium.js';

it('cdp leases a browser at its debugging port one at a time, and nothing carries over', async () => {
  // Of another service.
  vi.stubEnv('BROWSER_POOL_BASE_URL', 'https://pool.example.com');
  await using browser = await startChromium();
  const { host } = new URL(browser.url);
  await using pool = new BrowserPool('mine', { service: cdp(`http://${host}`) });
  let leased = 0;
  const visit = () =>
    withPooledBrowser(pool, async ({ context, page }) => {
      expect(++leased).toBe(1);
      const cookies = await context.cookies();
      await context.addCookies([{ name: 'seen', value: '1', url: 'https://example.com' }]);
      await page.goto('data:text/html,<title>visited</title>');
      await context.newPage();
      leased--;
      return { cookies, pages: context.pages().length };
    });
  const runs = await Promise.all([visit(), visit(), visit(), visit()]);
  for (const run of runs)
    expect(run).toMatchObject({ value: { cookies: [], pages: 2 }, cleanupErrors: [], replays: [] });
});

it.each(['eager', 'lazy'] as const)(
  'a lease of cdp is lost with its browser, also if another one starts at its port (reconnect: %s)',
  async (reconnect) => {
    const browser = await startChromium();
    const { host, port } = new URL(browser.url);
    await using pool = new BrowserPool('mine', { service: cdp(`http://${host}`) });
    const lease = await leaseBrowser(pool, { reconnect });
    await lease.page.goto('data:text/html,<title>visited</title>');
    await browser[Symbol.asyncDispose]();
    await using other = await startChromium(`--remote-debugging-port=${port}`);
    expect(new URL(other.url).host).toBe(host);
    await expect(lease.use(({ page }) => page.title())).rejects.toThrow(BrowserLostError);
    await lease.release();
    const { value } = await withPooledBrowser(pool, ({ page }) => page.url());
    expect(value).toBe('about:blank');
  },
);

it('a detached lease of cdp is not continued in another browser at its port', async () => {
  const browser = await startChromium();
  const { host, port } = new URL(browser.url);
  await using pool = new BrowserPool('mine', { service: cdp(`http://${host}`) });
  const lease = await leaseBrowser(pool);
  const detached = await lease.detach();
  await browser[Symbol.asyncDispose]();
  await using other = await startChromium(`--remote-debugging-port=${port}`);
  expect(new URL(other.url).host).toBe(host);
  await expect(attachBrowser(detached, { pool })).rejects.toThrow('404');
});
