import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { expect, it } from 'vitest';
import { look, titled, useLocalPool } from '../support/local.js';
import { DRIVERS } from '../support/drivers.js';
import { useWholeBrowser } from '../support/whole-browser.js';

useWholeBrowser();

const used = useLocalPool();

it('a browser that this library released works with plain Playwright and plain Puppeteer, and vice versa', async () => {
  const { pool, local } = used;
  for (const { run } of DRIVERS) {
    // A slow cleanup must not destroy the browser.
    await run(pool, ({ page }) => page.goto(titled('ours')), { release: 'reuse' });
    await look(pool, async ({ cdp_ws_url }) => {
      const browser = await chromium.connectOverCDP(cdp_ws_url);
      const page = browser.contexts()[0]!.pages()[0]!;
      await page.goto(titled('plain Playwright'));
      expect(await page.title()).toBe('plain Playwright');
      await browser.close();
    });
    await look(pool, async ({ cdp_ws_url: browserWSEndpoint }) => {
      const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
      const [page] = await browser.pages();
      await page!.goto(titled('plain Puppeteer'));
      expect(await page!.title()).toBe('plain Puppeteer');
      await browser.disconnect();
    });
    await look(pool, async ({ webdriver_ws_url: browserWSEndpoint }) => {
      const browser = await puppeteer.connect({
        browserWSEndpoint,
        protocol: 'webDriverBiDi',
        defaultViewport: null,
      });
      const [page] = await browser.pages();
      await page!.goto(titled('plain BiDi'));
      expect(await page!.title()).toBe('plain BiDi');
      await browser.disconnect();
    });
  }
  expect(local.stats()).toMatchObject({ leased: 0, destroyed: 0 });
});
