import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import type { ContextChoice, Isolation, Workspace } from './connector.js';
import { Wiper } from './wiper.js';

/** What a callback gets of Puppeteer; `context` where it is a new one. */
export type PuppeteerHandles<Choice extends ContextChoice = 'default'> = {
  browser: Browser;
  page: Page;
} & (Choice extends 'new' ? { context: BrowserContext } : unknown);

/** A page for tasks: of the browser's own context where nothing is isolated, of a new one otherwise. */
export async function openPuppeteerWorkspace(
  browser: Browser,
  isolation: Isolation,
): Promise<Workspace<PuppeteerHandles<'new'>>> {
  const context =
    isolation === 'none' ? browser.defaultBrowserContext() : await browser.createBrowserContext();
  const page = await context.newPage();
  const wiper = isolation === 'storage' ? await watch(context, page) : undefined;
  let hasCrashed = false;
  page.once('error', () => {
    hasCrashed = true;
  });
  return {
    handles: { browser, context, page },
    reset: async () => {
      if (isolation === 'context' || hasCrashed || page.isClosed()) return false;
      if (!wiper) return true;
      const [isWiped] = await Promise.all([wiper.wipe(), context.clearPermissionOverrides()]);
      return isWiped;
    },
    close: async () => {
      if (isolation !== 'none') await context.close();
      else if (!page.isClosed()) await page.close();
    },
  };
}

async function watch(context: BrowserContext, page: Page): Promise<Wiper> {
  const cdp = await page.createCDPSession();
  const wiper = new Wiper((method, params) => cdp.send(method as 'Page.enable', params));
  page.on('framenavigated', (frame) => wiper.onNavigated(frame.url(), frame === page.mainFrame()));
  // Until somebody answers it, a dialog holds up the page.
  page.on('dialog', wiper.stray);
  context.on('targetcreated', (target) => target.type() === 'page' && wiper.stray());
  // A download runs on as long as its context does. Puppeteer has no event for it.
  cdp.on('Page.downloadWillBegin', wiper.stray);
  await cdp.send('Page.enable');
  return wiper;
}
