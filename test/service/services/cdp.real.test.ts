import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { expect, it, onTestFinished, vi } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { findBrowser } from '../../../src/local.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { cdp } from '../../../src/services.js';

/** Starts Chromium with a debugging port, without the local pool. Returns the URL of the port. */
async function startChromium(): Promise<string> {
  const userDataDir = await mkdtemp(join(tmpdir(), 'debugging-port-'));
  const args = ['--no-sandbox'];
  const browser = await puppeteer.launch({ executablePath: await findBrowser(), args, userDataDir });
  onTestFinished(async () => {
    await browser.close();
    await rm(userDataDir, { recursive: true, force: true });
  });
  return `http://${new URL(browser.wsEndpoint()).host}`;
}

it('cdp leases a browser at its debugging port one at a time, and nothing carries over', async () => {
  // Of another service.
  vi.stubEnv('BROWSER_POOL_BASE_URL', 'https://pool.example.com');
  await using pool = new BrowserPool('mine', { service: cdp(await startChromium()) });
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
