import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Isolation, Workspace } from './connector.js';
import { Wiper } from './wiper.js';

/** What a callback gets of Playwright. */
export interface PlaywrightHandles {
  browser: Browser;
  context: BrowserContext;
  page: Page;
}

/** A page for tasks: of the browser's own context where nothing is isolated, of a new one otherwise. */
export async function openPlaywrightWorkspace(
  browser: Browser,
  ownContext: BrowserContext,
  isolation: Isolation,
): Promise<Workspace<PlaywrightHandles>> {
  // Without a viewport of its own a context follows the window, as the pool set it up.
  const context = isolation === 'none' ? ownContext : await browser.newContext({ viewport: null });
  const page = await context.newPage();
  const wiper = isolation === 'storage' ? await watch(context, page) : undefined;
  let hasCrashed = false;
  page.once('crash', () => {
    hasCrashed = true;
  });
  return {
    handles: { browser, context, page },
    reset: async () => {
      if (isolation === 'context' || hasCrashed || page.isClosed()) return false;
      if (!wiper) return true;
      const tidied = Promise.all([context.clearPermissions(), page.unrouteAll(), context.unrouteAll()]);
      const [isWiped] = await Promise.all([wiper.wipe(), tidied]);
      return isWiped;
    },
    close: async () => {
      if (isolation !== 'none') await context.close();
      else if (!page.isClosed()) await page.close();
    },
  };
}

async function watch(context: BrowserContext, page: Page): Promise<Wiper> {
  const cdp = await context.newCDPSession(page);
  const wiper = new Wiper((method, params) => cdp.send(method as 'Page.enable', params));
  page.on('framenavigated', (frame) => wiper.onNavigated(frame.url(), frame === page.mainFrame()));
  context.on('page', wiper.stray);
  // It runs on, and its file stays, as long as its context does.
  page.on('download', wiper.stray);
  return wiper;
}
