import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RunEvent } from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { look, titled, useLocalPool } from '../support/local.js';
import { useWholeBrowser } from '../support/whole-browser.js';

// In a headless shell, another page can get the process of the unresponsive page.
useWholeBrowser();

/** What leaves a page that Playwright waits for. Returns its URL. */
const LEFT: [what: string, leave: (browser: Browser) => Promise<string>][] = [
  [
    'unresponsive page',
    async (browser) => {
      const page = await browser.contexts()[0]!.newPage();
      await page.goto(titled('stuck'));
      // Injected fault: a script that never ends. It starts after this answer; then the page's renderer no longer responds.
      await page.evaluate('void setTimeout(() => { for (;;) {} })');
      await page.waitForTimeout(200);
      return titled('stuck');
    },
  ],
  [
    'page whose first document never comes',
    async (browser) => {
      const server = createServer(() => {});
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const requested = once(server, 'request');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      await (await browser.newBrowserCDPSession()).send('Target.createTarget', { url });
      await requested;
      return url;
    },
  ],
];

describe.each(DRIVERS)('$name', ({ name, run }) => {
  const used = useLocalPool();

  it.each(LEFT)(
    'connects to a browser in which the previous lease has left an open %s, and releases it',
    async (_what, leave) => {
      const { pool, local } = used;
      let url = '';
      await look(pool, async ({ cdp_ws_url }) => {
        const browser = await chromium.connectOverCDP(cdp_ws_url);
        url = await leave(browser);
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
        expect.objectContaining({ type: 'unresponsive-pages-closed', urls: [url] }),
      );
    },
  );
});
