import type { Browser, BrowserContext, BrowserType, ConnectOverCDPOptions, Page } from 'playwright-core';
import { lazy, loadLibrary } from '../shared/lazy.js';
import type { Connection, Connector, ConnectRequest } from './connector.js';
import { makeArtifactsFolder } from './artifacts-folder.js';
import { openRelay } from './relay.js';
import { openPlaywrightWorkspace, type PlaywrightHandles } from './playwright-workspace.js';

export type { PlaywrightHandles };

export interface PlaywrightOptions {
  /** The caller's own copy of the library: `chromium` of playwright, @playwright/test or patchright. */
  chromium?: Pick<BrowserType, 'connectOverCDP'> | undefined;
}

const loadPlaywright = lazy(() => import('playwright-core'));

const REFUSAL =
  'Playwright has no public way to connect to a WebDriver BiDi socket. ' +
  "Use protocol 'cdp', or Puppeteer with protocol 'bidi' (pooled-browser/puppeteer).";

/** Connects Playwright over CDP. The library is imported when it is first needed. */
export function playwright(options: PlaywrightOptions = {}): Connector<PlaywrightHandles> {
  const chromium = async () =>
    options.chromium ?? (await loadLibrary('playwright-core', loadPlaywright)).chromium;
  return {
    library: 'playwright',
    refusal: (protocol) => (protocol === 'bidi' ? REFUSAL : undefined),
    load: chromium,
    connect: async (request) => connect(await chromium(), request),
  };
}

async function connect(
  chromium: Pick<BrowserType, 'connectOverCDP'>,
  { socket, context: choice, driver, pageUrl }: ConnectRequest,
): Promise<Connection<PlaywrightHandles>> {
  const [relay, artifacts] = await Promise.all([openRelay(socket), makeArtifactsFolder()]);
  // Once the socket has ended, however that came about, Playwright keeps nothing there any more.
  const removed = socket.ended.then(() => artifacts.remove());
  // Whoever asked limits it, by cutting the socket. Playwright does not always notice that, and would go on to its own
  // limit with a timer that holds the process.
  const options: ConnectOverCDPOptions = { timeout: 0, artifactsDir: artifacts.path, ...driver };
  const browser = await chromium.connectOverCDP(relay.url, options).finally(relay.close);
  const ownContext = browser.contexts()[0]!;
  const firstPages = new Set(ownContext.pages());
  // Without a viewport of its own a context follows the window, as the pool set it up.
  const context = choice === 'new' ? await browser.newContext({ viewport: null }) : ownContext;
  const pages = context.pages();
  const page = pages.find((one) => one.url() === pageUrl) ?? pages[0] ?? (await context.newPage());
  return {
    handles: { browser, context, page },
    pageUrl: () => page.url(),
    openWorkspace: (isolation) => openPlaywrightWorkspace(browser, ownContext, isolation),
    isConnected: () => browser.isConnected(),
    sweep: () => sweep(browser, ownContext, firstPages),
    disconnect: async () => {
      socket.close('closed-by-us');
      await browser.close();
      // Not a round trip more for the answer to the closing handshake.
      socket.cut('closed-by-us');
      await removed;
    },
  };
}

async function sweep(browser: Browser, ownContext: BrowserContext, firstPages: Set<Page>): Promise<void> {
  const kept = ownContext.pages().filter((page) => firstPages.has(page));
  const opened = ownContext.pages().filter((page) => !firstPages.has(page));
  // A browser with a window ends with its last page: one stays.
  if (kept.length === 0) await ownContext.newPage();
  await Promise.all([
    ...browser.contexts().map((context) => context !== ownContext && context.close()),
    ...opened.map((page) => page.close()),
    ...kept.map(answers),
  ]);
}

/** Rejects or hangs when the page is no good for the next lease. A navigation may break one answer, not two. */
async function answers(page: Page): Promise<unknown> {
  return page.evaluate('0').catch(() => page.isClosed() || page.evaluate('0'));
}
