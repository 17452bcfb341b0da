import type { Browser, BrowserContext, ConnectOptions, Page, Target } from 'puppeteer-core';
import { allSettled } from '../shared/abort.js';
import { lazyLibrary } from '../shared/lazy-library.js';
import {
  openUrl,
  pageIdOf,
  type LibraryConnection,
  type Connector,
  type ConnectRequest,
  type ContextChoice,
  type Observation,
  type ObserveRequest,
  type BrowserProtocol,
} from './connector.js';
import { Contexts, type ContextLibrary } from './contexts.js';
import { ObservedPages } from './observed-pages.js';
import {
  checkPuppeteerContext,
  openPuppeteerContext,
  type PuppeteerContextOptions,
} from './puppeteer-context.js';
import { SiteDataCleaner } from '../clean/site-data.js';
import { socketTransport } from './transport.js';
import { isError } from '../shared/globals.js';

/** Puppeteer's part of the callback's argument; `context` only with the option `context: 'new'`. */
export type PuppeteerHandles<Choice extends ContextChoice = 'default'> = {
  /** The leased browser. */
  browser: Browser;
  /** A page of the browser's own context, or of the new one. */
  page: Page;
} & (Choice extends 'new' ? NewContext : unknown);

/** @inline */
interface NewContext {
  /** The fresh context. */
  context: BrowserContext;
}

/** The option of every function for Puppeteer: which copy of the library to use. */
export interface PuppeteerOptions {
  /** The caller's own copy of the library: puppeteer, or puppeteer-extra. */
  puppeteer?: PuppeteerLibrary | undefined;
}

/** @inline */
interface PuppeteerLibrary {
  /** As `puppeteer.connect`. */
  connect(options: ConnectOptions): Promise<Browser>;
}

const loadPuppeteer = lazyLibrary('puppeteer-core', () => import('puppeteer-core'));

const REFUSAL =
  'WebDriver BiDi has no commands to clear the data that a site stores in a page. ' +
  "Use isolation 'context', or protocol 'cdp'.";

/** Connects Puppeteer over CDP or WebDriver BiDi. The library is imported when a lease needs it. */
export function puppeteer(options: PuppeteerOptions = {}): Connector<PuppeteerHandles> {
  const library = async (): Promise<PuppeteerLibrary> => options.puppeteer ?? loadPuppeteer();
  return {
    library: 'puppeteer',
    refusal: (protocol, isolation) => (protocol === 'bidi' && isolation === 'storage' ? REFUSAL : undefined),
    checkContext: checkPuppeteerContext,
    load: library,
    connect: async (request) => connect(await library(), request),
  };
}

async function connect(
  library: PuppeteerLibrary,
  { socket, protocol, context: choice, contextOptions, ...request }: ConnectRequest,
): Promise<LibraryConnection<PuppeteerHandles>> {
  const [browser, url] = await Promise.all([
    library.connect({
      // Puppeteer's default resizes the leased browser.
      defaultViewport: null,
      ...request.connectOptions,
      protocol: protocol === 'bidi' ? 'webDriverBiDi' : 'cdp',
      transport: socketTransport(socket, protocol),
    }),
    protocol === 'cdp' ? request.sharedEndpoint() : undefined,
  ]);
  // Puppeteer has no URL of a transport. The method is synchronous, so the URL exists before it is called.
  if (url !== undefined) browser.wsEndpoint = () => url;
  const browsersOwn = browser.defaultBrowserContext();
  await waitForPage(browser, browsersOwn);
  const isReplaced = choice === 'default' && (await request.replacesOwnContext());
  const ownContext = isReplaced ? await replaceOwnContext(browser) : browsersOwn;
  const firstContexts = new Set(browser.browserContexts());
  const { httpLogins } = request;
  const isConnected = () => browser.connected;
  const contexts = new Contexts(CONTEXTS, { browser, own: ownContext, isConnected, httpLogins });
  const context = await contexts.open(choice, contextOptions);
  const page = await contexts.attempt(contextOptions, () => usablePage(context, request.pageUrl));
  watchContext(browsersOwn, request.onOwnContextUsed);
  return {
    handles: { browser, page, ...(choice === 'new' && { context }) },
    pageUrl: () => page.url(),
    openWorkspace: contexts.openWorkspace,
    openContext: contexts.open,
    openUrl,
    observe,
    pageId: async ({ page: one }) => pageIdOf(await one.createCDPSession()),
    isConnected,
    openHandles: () => handlesOf(browser, protocol),
    cleanup: () => {
      const opened = browser.browserContexts().filter((one) => !firstContexts.has(one));
      return allSettled(opened.map(async (one) => one.close().catch(unlessClosing)));
    },
    disconnect: async () => {
      socket.close('closed-by-us');
      await browser.disconnect();
    },
  };
}

/** Puts a context in the place of the browser's own one: that of an earlier connection of the lease, or a fresh one. */
async function replaceOwnContext(browser: Browser): Promise<BrowserContext> {
  const own = browser.defaultBrowserContext();
  const others = () => all().filter((one) => one !== own);
  const all = browser.browserContexts.bind(browser);
  const found = others().find((one) => pageTargets(one).length > 0) ?? (await browser.createBrowserContext());
  browser.defaultBrowserContext = () => found;
  browser.newPage = (options) => found.newPage(options);
  browser.browserContexts = others;
  return found;
}

/** Those that are still open. */
function handlesOf(browser: Browser, protocol: BrowserProtocol): Set<object> {
  const handles = new Set<object>([browser, ...browser.browserContexts()]);
  const add = (page: Page | null) => {
    if (!page) return;
    const { keyboard, mouse, touchscreen } = page;
    for (const one of [page, keyboard, mouse, touchscreen, ...page.frames()]) handles.add(one);
  };
  for (const target of browser.targets()) {
    // Over CDP, Puppeteer would set up a page that nobody has.
    const isSetUp = protocol === 'bidi' || Reflect.get(target, 'pagePromise') !== undefined;
    if (target.type() === 'page' && isSetUp) target.page().then(add, () => {});
  }
  return handles;
}

/** Calls a function when a page of a context is opened or navigated. */
function watchContext(context: BrowserContext, onUse: () => void): void {
  const onTarget = (target: Target) => target.type() === 'page' && onUse();
  context.on('targetcreated', onTarget).on('targetchanged', onTarget);
}

/** Time until Puppeteer must see a page, in ms. */
const PAGE_TIMEOUT = 300;

/** Puppeteer does not list a page that changes its process. */
async function waitForPage(browser: Browser, context: BrowserContext): Promise<void> {
  if (pageTargets(context).length > 0) return;
  const isPage = (target: Target) => target.type() === 'page' && target.browserContext() === context;
  await browser.waitForTarget(isPage, { timeout: PAGE_TIMEOUT }).catch(() => {});
}

async function usablePage(context: BrowserContext, url: string | undefined): Promise<Page> {
  const targets = pageTargets(context).toSorted((a, b) => Number(b.url() === url) - Number(a.url() === url));
  for (const target of targets) {
    const page = await target.page();
    // Puppeteer also returns a page that was closed in the meantime.
    if (page && pageTargets(context).includes(target)) return page;
  }
  return context.newPage();
}

/** Returns targets, because Puppeteer sets up every page that it returns. */
function pageTargets(context: BrowserContext): Target[] {
  return context.targets().filter((target) => target.type() === 'page');
}

const CONTEXTS: ContextLibrary<Browser, Page, BrowserContext, PuppeteerContextOptions> = {
  check: checkPuppeteerContext,
  newContext: openPuppeteerContext,
  // Firefox fails to open a page while it closes the pages of another context, as between two tasks.
  canRetry: (error) => isError(error) && error.message.includes('DiscardedBrowsingContextError'),
  hasSiteData: ({ cookies }) => cookies !== undefined,
  onCrash: (page, call) => page.once('error', call),
  watch,
  reset: (context) => context.clearPermissionOverrides(),
};

function observe({ handles, ...request }: ObserveRequest<PuppeteerHandles<'new'>>): Observation {
  const { browser, context, page } = handles;
  const observed = new ObservedPages(request);
  observed.noteCalls('puppeteer', handles);
  const addTarget = (target: Target) => {
    // A page may be closed before Puppeteer has set it up.
    if (target.type() === 'page') target.page().then(observed.add, () => {});
  };
  if (page) observed.add(page);
  if (request.scope === 'browser') observed.listen(browser!, 'targetcreated', addTarget);
  else if (request.scope === 'context') observed.listen(context!, 'targetcreated', addTarget);
  return observed;
}

async function watch(context: BrowserContext, page: Page): Promise<SiteDataCleaner> {
  const cdp = await page.createCDPSession();
  const cleaner = new SiteDataCleaner((method, params) => cdp.send(method as 'Page.enable', params));
  page.on('framenavigated', (frame) => cleaner.onNavigated(frame.url(), frame === page.mainFrame()));
  // A dialog blocks the page until it is closed.
  page.on('dialog', cleaner.markUnsafe);
  // A pop-up, or a worker that lasts longer than the page.
  context.on(
    'targetcreated',
    (target) => /page|service_worker|shared_worker/.test(target.type()) && cleaner.markUnsafe(),
  );
  // A download lasts as long as its context. Puppeteer has no event for downloads.
  cdp.on('Page.downloadWillBegin', cleaner.markUnsafe);
  await cdp.send('Page.enable');
  return cleaner;
}

/** The callback may be closing a context, which can't be closed again: the cleaning waits for its pages. */
function unlessClosing(error: unknown): void {
  if (!(isError(error) && error.message.includes('already pending'))) throw error;
}
