import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { look, titled, useLocalPool } from '../support/local.js';
import { useWholeBrowser } from '../support/whole-browser.js';

// In a headless shell, another page can get the process of the unresponsive page.
useWholeBrowser();

describe.each(DRIVERS)('$name', ({ name, run }) => {
  const used = useLocalPool();

  it('connects to a browser with an unresponsive page of the previous lease, and releases the browser', async () => {
    const { pool, local } = used;
    await look(pool, async ({ cdp_ws_url }) => {
      const browser = await chromium.connectOverCDP(cdp_ws_url);
      const page = await browser.contexts()[0]!.newPage();
      await page.goto(titled('stuck'));
      // Injected fault: a script that never ends. It starts after this answer; then the page's renderer no longer responds.
      await page.evaluate('void setTimeout(() => { for (;;) {} })');
      await page.waitForTimeout(200);
      await browser.close();
    });
    const events: RunEvent[] = [];
    const { value, released } = await run(
      pool,
      async ({ page }) => {
        await page.goto(titled('next'));
        return page.title();
      },
      { connectAttempts: 1, onEvent: (event) => events.push(event) },
    );
    expect(value).toBe('next');
    // A browser that can't be cleaned up in time is destroyed; in both cases nothing stays leased.
    expect(['reused', 'destroyed']).toContain(released);
    expect(local.stats().leased).toBe(0);
    // Puppeteer connects anyway; Playwright only after the page is closed.
    if (!name.startsWith('Playwright')) return;
    expect(released).toBe('reused');
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'unresponsive-pages-closed', urls: [titled('stuck')] }),
    );
  });
});
