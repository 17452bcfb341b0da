import { expect, it, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { withPooledBrowser } from '../../src/playwright.js';
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
