import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  BrowserType,
  ConnectOverCDPOptions,
  Page,
} from 'playwright-core';
import { environment } from '../shared/environment.js';
import { hasReplacedRequests } from '../net/native-requests.js';
import { addAdvice } from '../shared/errors.js';
import { lazyLibrary } from '../shared/lazy-library.js';
import {
  openUrl,
  pageIdOf,
  type LibraryConnection,
  type Connector,
  type ConnectRequest,
  type Observation,
  type ObserveRequest,
} from './connector.js';
import { Contexts, type ContextLibrary } from './contexts.js';
import { ObservedPages } from './observed-pages.js';
import { checkPlaywrightContext, withWindowSize } from './playwright-context.js';
import { PlaywrightFiles } from './playwright-files.js';
import { SiteDataCleaner } from '../clean/site-data.js';
import { createTemporaryFolder } from '../shared/connection-folder.js';
import { isError } from '../shared/globals.js';

/** Playwright's part of the callback's argument. */
export interface PlaywrightHandles {
  /** The leased browser. */
  browser: Browser;
  /** The browser's own context, or with `context: 'new'` a fresh one. */
  context: BrowserContext;
  /** A page of the context. */
  page: Page;
}

/** The option of every function for Playwright: which copy of the library to use. */
export interface PlaywrightOptions {
  /** The caller's own copy of the library: `chromium` of playwright, `@playwright/test` or patchright. */
  chromium?: Pick<BrowserType, 'connectOverCDP'> | undefined;
}

/**
 * Playwright is written in CommonJS. With `import()`, Node parses all of it once more for the names of its exports, which is a
 * third of the time. In a bundle that contains it, only `import()` finds it.
 */
const loadPlaywright = lazyLibrary('playwright-core', async () => {
  try {
    return createRequire(import.meta.url)('playwright-core') as { chromium: BrowserType };
  } catch {
    return import('playwright-core');
  }
});

const REFUSAL =
  "Playwright has no public API for WebDriver BiDi connections, and needs protocol 'cdp'. " +
  "Puppeteer has one: pooled-browser/puppeteer, with protocol 'bidi'.";

/** Connects Playwright over CDP. The library is imported when a lease needs it. */
export function playwright(options: PlaywrightOptions = {}): Connector<PlaywrightHandles> {
  const chromium = async () => options.chromium ?? (await loadPlaywright()).chromium;
  return {
    library: 'playwright',
    refusal: (protocol) => (protocol === 'bidi' ? REFUSAL : undefined),
    canTrace: true,
    savesDownloads: true,
    checkContext: checkPlaywrightContext,
    load: chromium,
    connect: async (request) => connect(await chromium(), request),
  };
}

/** Otherwise, a user who needs no browser on this machine reads that none is installed. */
const OF_INSPECTOR =
  'PWDEBUG is set: Playwright also opens its Inspector, which needs a browser of Playwright on this machine ' +
  '(npx playwright install chromium) and a screen. Without PWDEBUG, only the leased browser is needed.';

/** Playwright opens its WebSocket with `http.request` at some later time, so nothing here can replace it for that call. */
const OF_REPLACED =
  'A library replaces http.request in this process (nock, msw), and Playwright connects to the lease on this machine through it: ' +
  "allow connections to 127.0.0.1, for example nock.enableNetConnect('127.0.0.1'), or a function as msw's onUnhandledRequest.";

const OF_EACH_CONNECTION = { openUrl, observe, explain, pageId };

async function connect(
  chromium: Pick<BrowserType, 'connectOverCDP'>,
  { socket, context: choice, contextOptions, endReason: reason, ...request }: ConnectRequest,
): Promise<LibraryConnection<PlaywrightHandles>> {
  const [url, artifacts] = await Promise.all([request.endpoint(), createTemporaryFolder(socket)]);
  // The caller ends a slow connect by closing the socket. Playwright's own timeout would keep the process alive.
  const options: ConnectOverCDPOptions = {
    timeout: 0,
    // Playwright would remove its own folder some time after the connection has ended: a process that ends before that leaves the
    // folder behind. It writes nothing after the socket has ended.
    artifactsDir: artifacts.path,
    ...request.connectOptions,
  };
  const browser = await chromium.connectOverCDP(url, options).catch((error: unknown) => {
    if (isError(error) && environment.opensInspector()) error.message += `\n${OF_INSPECTOR}`;
    if (isError(error) && hasReplacedRequests()) error.message += `\n${OF_REPLACED}`;
    throw error;
  });
  emitContexts(browser);
  const files = new PlaywrightFiles(browser, reason);
  let hasEnded = false;
  void socket.ended.then(() => (hasEnded = true));
  // A call that is still pending when the socket is taken over shows the reason.
  void socket.detached.then(() => {
    if (!hasEnded) browser.close({ reason }).catch(() => {});
  });
  await request.useBrowser?.(browser);
  const ownContext = browser.contexts()[0]!;
  const { httpLogins } = request;
  const isConnected = () => browser.isConnected();
  const contexts = new Contexts(CONTEXTS, { browser, own: ownContext, isConnected, httpLogins });
  const context = await contexts.open(choice, contextOptions);
  const newPage = () => contexts.attempt(contextOptions, () => context.newPage());
  const pages = context.pages();
  const page = pages.find((one) => one.url() === request.pageUrl) ?? pages[0] ?? (await newPage());
  watchContext(ownContext, request.onOwnContextUsed);
  return {
    handles: { browser, context, page },
    pageUrl: () => page.url(),
    openWorkspace: contexts.openWorkspace,
    openContext: contexts.open,
    ...OF_EACH_CONNECTION,
    isConnected,
    openHandles: () => handlesOf(browser),
    files,
    cleanup: () => files.closeAll(browser.contexts()),
    disconnect: async () => {
      socket.close('closed-by-us');
      await browser.close({ reason });
      // Waiting for the closing handshake would cost a round trip.
      socket.cut('closed-by-us');
      await artifacts.removed;
    },
  };
}

/** Those that are still open: Playwright lists no others. */
function handlesOf(browser: Browser): object[] {
  const contexts = browser.contexts();
  const pages = contexts.flatMap((context) => context.pages());
  const partsOf = (page: Page) => [page.keyboard, page.mouse, page.touchscreen, ...page.frames()];
  const requests = contexts.map(({ request }) => request);
  return [browser, ...contexts, ...requests, ...pages, ...pages.flatMap(partsOf)];
}

/** The oldest versions emit no event `context`, by which artifacts and fixtures see the contexts that a callback or test opens. */
function emitContexts(browser: Browser): void {
  const seen = new WeakSet<BrowserContext>();
  browser.on('context', (context) => seen.add(context));
  // The method of the class, each time: its calls may be noted by then.
  const library = Object.getPrototypeOf(browser) as Browser;
  const newContext: Browser['newContext'] = (options) => library.newContext.call(browser, options);
  // `newPage` calls it, too.
  browser.newContext = async (options) => {
    const context = await newContext(options);
    if (!seen.has(context)) (browser as unknown as EventEmitter).emit('context', context);
    return context;
  };
}

/** Calls a function when a page of a context is opened or navigated. */
function watchContext(context: BrowserContext, onUse: () => void): void {
  context.on('page', onUse);
  for (const page of context.pages()) page.on('framenavigated', onUse);
}

const CONTEXTS: ContextLibrary<Browser, Page, BrowserContext, BrowserContextOptions> = {
  check: checkPlaywrightContext,
  newContext: (browser, options) => browser.newContext(withWindowSize(options)),
  hasSiteData: ({ storageState }) => storageState !== undefined,
  onCrash: (page, call) => page.once('crash', call),
  watch,
  reset: async (context, page, options) => {
    await Promise.all([context.clearPermissions(), page.unrouteAll(), context.unrouteAll()]);
    if (options?.permissions) await context.grantPermissions(options.permissions);
  },
};

function observe({ handles, ...request }: ObserveRequest<PlaywrightHandles>): Observation {
  const { browser, page, context = page?.context() } = handles;
  const observed = new ObservedPages(request);
  observed.noteCalls('playwright', handles);
  const addContext = (one: BrowserContext) => {
    observed.listen(one, 'page', observed.add);
    observed.learn(one, ...one.pages());
  };
  if (page) observed.add(page);
  if (request.scope === 'browser') {
    browser!.contexts().forEach(addContext);
    observed.listen(browser!, 'context', addContext);
  } else if (request.scope === 'context') addContext(context!);
  const { tracing } = context!;
  return Object.assign(observed, {
    trace: {
      start: () => tracing.start({ screenshots: true, snapshots: true }),
      stop: (path?: string) => tracing.stop(path === undefined ? {} : { path }),
    },
  });
}

async function watch(context: BrowserContext, page: Page): Promise<SiteDataCleaner> {
  const cdp = await context.newCDPSession(page);
  const cleaner = new SiteDataCleaner((method, params) => cdp.send(method as 'Page.enable', params));
  page.on('framenavigated', (frame) => cleaner.onNavigated(frame.url(), frame === page.mainFrame()));
  context.on('page', cleaner.markUnsafe);
  context.on('serviceworker', cleaner.markUnsafe);
  // A download and its file last as long as their context.
  page.on('download', cleaner.markUnsafe);
  return cleaner;
}

async function pageId({ page }: Pick<PlaywrightHandles, 'page'>): Promise<string> {
  return pageIdOf(await page.context().newCDPSession(page));
}

/** Playwright refuses such files before it sends anything. */
const TOO_LARGE = 'Cannot transfer files larger than 50Mb to a browser not co-located with the server';
const LARGE_FILES =
  'Lease the browser with connectOptions: { isLocal: true }: then Playwright sends paths, and the lease copies files of any ' +
  "size to the browser's machine.";

function explain(error: unknown): void {
  if (isError(error)) addAdvice(error, TOO_LARGE, LARGE_FILES);
}
