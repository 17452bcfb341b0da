import type { Browser, BrowserContext, ConnectOptions, Page, Target } from 'puppeteer-core';
import { lazy, loadLibrary } from '../shared/lazy.js';
import { withAnySession } from './bidi-session.js';
import type { Connection, Connector, ConnectRequest } from './connector.js';
import { openPuppeteerWorkspace, type PuppeteerHandles } from './puppeteer-workspace.js';
import { socketTransport } from './transport.js';

export type { PuppeteerHandles };

export interface PuppeteerOptions {
  /** The caller's own copy of the library: puppeteer, or puppeteer-extra. */
  puppeteer?: PuppeteerLibrary | undefined;
}

interface PuppeteerLibrary {
  connect(options: ConnectOptions): Promise<Browser>;
}

const loadPuppeteer = lazy(() => import('puppeteer-core'));

const REFUSAL =
  'WebDriver BiDi has no commands that wipe what a site keeps in a page. ' +
  "Use isolation 'context', or protocol 'cdp'.";

/** Connects Puppeteer over CDP or WebDriver BiDi. The library is imported when it is first needed. */
export function puppeteer(options: PuppeteerOptions = {}): Connector<PuppeteerHandles> {
  const library = async (): Promise<PuppeteerLibrary> =>
    options.puppeteer ?? loadLibrary('puppeteer-core', loadPuppeteer);
  return {
    library: 'puppeteer',
    refusal: (protocol, isolation) => (protocol === 'bidi' && isolation === 'storage' ? REFUSAL : undefined),
    load: library,
    connect: async (request) => connect(await library(), request),
  };
}

async function connect(
  library: PuppeteerLibrary,
  { socket, protocol, context: choice, driver, pageUrl }: ConnectRequest,
): Promise<Connection<PuppeteerHandles>> {
  const transport = socketTransport(socket, protocol);
  const browser = await library.connect({
    // Puppeteer's default would resize the leased browser.
    defaultViewport: null,
    ...driver,
    ...(protocol === 'bidi'
      ? { protocol: 'webDriverBiDi', transport: withAnySession(transport) }
      : { protocol: 'cdp', transport }),
  });
  const ownContext = browser.defaultBrowserContext();
  await seePages(browser, ownContext);
  const firstContexts = new Set(browser.browserContexts());
  const firstTargets = new Set(pageTargets(ownContext));
  const context = choice === 'new' ? await browser.createBrowserContext() : ownContext;
  const page = await usablePage(context, pageUrl);
  return {
    handles: { browser, page, ...(choice === 'new' && { context }) },
    pageUrl: () => page.url(),
    openWorkspace: (isolation) => openPuppeteerWorkspace(browser, isolation),
    isConnected: () => browser.connected,
    sweep: () => sweep(browser, firstContexts, firstTargets),
    disconnect: async () => {
      socket.close('closed-by-us');
      await browser.disconnect();
    },
  };
}

/** Milliseconds to wait for Puppeteer to see a page. */
const SEE_PAGES_TIMEOUT = 300;

/** While a page changes its process, Puppeteer does not see it for a moment: the sweep would take it for one of ours. */
async function seePages(browser: Browser, context: BrowserContext): Promise<void> {
  if (pageTargets(context).length > 0) return;
  const isPage = (target: Target) => target.type() === 'page' && target.browserContext() === context;
  await browser.waitForTarget(isPage, { timeout: SEE_PAGES_TIMEOUT }).catch(() => {});
}

async function usablePage(context: BrowserContext, url: string | undefined): Promise<Page> {
  const targets = pageTargets(context).toSorted((a, b) => Number(b.url() === url) - Number(a.url() === url));
  for (const target of targets) {
    const page = await target.page();
    // A page can be closed while Puppeteer still sets it up, and is then handed over all the same.
    if (page && pageTargets(context).includes(target)) return page;
  }
  return context.newPage();
}

async function sweep(
  browser: Browser,
  firstContexts: Set<BrowserContext>,
  firstTargets: Set<Target>,
): Promise<void> {
  const ownContext = browser.defaultBrowserContext();
  const targets = pageTargets(ownContext);
  const kept = targets.filter((target) => firstTargets.has(target));
  // A browser with a window ends with its last page: one stays.
  if (kept.length === 0) await ownContext.newPage();
  await Promise.all([
    ...browser.browserContexts().map((context) => firstContexts.has(context) || context.close()),
    ...targets.map(async (target) => {
      const page = await target.page();
      await (kept.includes(target) ? page && answers(page) : page?.close());
    }),
  ]);
}

/** Rejects or hangs when the page is no good for the next lease. A navigation may break one answer, not two. */
async function answers(page: Page): Promise<unknown> {
  return page.evaluate('0').catch(() => page.isClosed() || page.evaluate('0'));
}

/** Targets, not pages: asking Puppeteer for all pages sets up each of them. */
function pageTargets(context: BrowserContext): Target[] {
  return context.targets().filter((target) => target.type() === 'page');
}
