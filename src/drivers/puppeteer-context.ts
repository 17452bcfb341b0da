import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  CookieData,
  Credentials,
  Page,
  Target,
  Viewport,
} from 'puppeteer-core';
import { isRecord } from '../shared/json.js';
import { check, checksOf, group, optional, readOptions, text } from '../shared/options.js';
import { OF_BROWSER, refuseUnknown } from './context-options.js';

/**
 * Options of a new context: Puppeteer's own, and settings of pages. The settings apply to every page before it is used;
 * the first request of a pop-up may be sent before them.
 */
export interface PuppeteerContextOptions extends BrowserContextOptions {
  /** Size of the pages; `null`: the size of the window. Default: `defaultViewport` of `connectOptions`, or the window's. */
  viewport?: Viewport | null | undefined;
  /** User agent of the pages. */
  userAgent?: string | undefined;
  /** Headers that every request of the pages has, besides those of the browser. */
  extraHTTPHeaders?: Record<string, string> | undefined;
  /** Time zone of the pages, such as `Europe/Berlin`. */
  timezoneId?: string | undefined;
  /** User name and password for HTTP authentication, and for the proxy. */
  credentials?: Credentials | undefined;
  /** Cookies of the context, for example those of `browser.cookies()` in an earlier lease. */
  cookies?: readonly CookieData[] | undefined;
}

type Settings = Omit<PuppeteerContextOptions, keyof BrowserContextOptions>;

const anObject = <T>() => check<T>('an object', isRecord);
const VIEWPORT = 'an object with a width and a height, or null';

const settings = checksOf<Settings>()({
  viewport: optional(
    check<Viewport | null>(
      VIEWPORT,
      (value) =>
        value === null || (isRecord(value) && Number(value['width']) >= 0 && Number(value['height']) >= 0),
    ),
  ),
  userAgent: optional(text()),
  extraHTTPHeaders: optional(
    check<Record<string, string>>(
      'an object of strings',
      (value) => isRecord(value) && Object.values(value).every((header) => typeof header === 'string'),
    ),
  ),
  timezoneId: optional(text()),
  credentials: optional(anObject<Credentials>()),
  cookies: optional(
    check<readonly CookieData[]>(
      'an array of cookies, each with a name, a value and a domain',
      (value) =>
        Array.isArray(value) &&
        value.every((cookie) => isRecord(cookie) && typeof cookie['domain'] === 'string'),
    ),
  ),
});

const OWN = { proxyServer: 0, proxyBypassList: 0, downloadBehavior: 0 } satisfies Record<
  keyof BrowserContextOptions,
  0
>;

const BY_CALL = 'Call the method of the page in the callback, or use pooled-browser/playwright.';
const BY_PLAYWRIGHT = 'Use pooled-browser/playwright, which has the option.';

const KNOWN = {
  library: 'Puppeteer',
  names: [...Object.keys(OWN), ...Object.keys(settings)],
  missing: {
    args: OF_BROWSER,
    headless: OF_BROWSER,
    acceptDownloads: 'Pass downloadBehavior.',
    baseURL: BY_PLAYWRIGHT,
    bypassCSP: BY_CALL,
    clientCertificates: BY_PLAYWRIGHT,
    colorScheme: BY_CALL,
    contrast: BY_CALL,
    deviceScaleFactor: 'Pass it in viewport.',
    forcedColors: BY_CALL,
    geolocation: BY_CALL,
    hasTouch: 'Pass it in viewport.',
    headers: 'Pass extraHTTPHeaders.',
    httpCredentials: 'Pass credentials: { username, password }.',
    ignoreHTTPSErrors: 'Pass connectOptions: { acceptInsecureCerts: true }.',
    isMobile: 'Pass it in viewport.',
    javaScriptEnabled: BY_CALL,
    locale: BY_PLAYWRIGHT,
    offline: BY_CALL,
    permissions: 'Call context.setPermission in the callback: Puppeteer needs the origin.',
    proxy: 'Pass proxyServer, and proxyBypassList.',
    recordHar: BY_PLAYWRIGHT,
    recordVideo: BY_PLAYWRIGHT,
    reducedMotion: BY_CALL,
    screen: BY_CALL,
    serviceWorkers: BY_CALL,
    storageState: 'Pass its cookies as cookies, or use pooled-browser/playwright.',
    strictSelectors: BY_PLAYWRIGHT,
  },
};

/** Checks what Puppeteer would ignore, or refuse only after a browser was leased. */
export function checkPuppeteerContext(options: object): void {
  refuseUnknown(options, KNOWN);
  const given = Object.entries(options).filter(([name]) => Object.hasOwn(settings, name));
  readOptions(
    { contextOptions: group(settings) },
    { contextOptions: Object.fromEntries(given) },
    'contextOptions',
  );
}

/** Opens a context with these options, which also apply to the pages that are opened there later. */
export async function openPuppeteerContext(
  browser: Browser,
  {
    viewport,
    userAgent,
    extraHTTPHeaders,
    timezoneId,
    credentials,
    cookies,
    ...own
  }: PuppeteerContextOptions = {},
): Promise<BrowserContext> {
  const context = await browser.createBrowserContext(own);
  try {
    if (cookies && cookies.length > 0) await context.setCookie(...cookies);
  } catch (error) {
    await context.close().catch(() => {});
    throw error;
  }
  const given = [viewport, userAgent, extraHTTPHeaders, timezoneId, credentials];
  if (given.every((one) => one === undefined)) return context;
  const applied = new WeakMap<Page, Promise<unknown>>();
  const set = async (page: Page) => {
    const pending: Promise<unknown>[] = [];
    if (viewport !== undefined) pending.push(page.setViewport(viewport));
    if (userAgent !== undefined) pending.push(page.setUserAgent({ userAgent }));
    if (extraHTTPHeaders) pending.push(page.setExtraHTTPHeaders(extraHTTPHeaders));
    if (timezoneId !== undefined) pending.push(page.emulateTimezone(timezoneId));
    if (credentials) pending.push(page.authenticate(credentials));
    await Promise.all(pending);
  };
  const apply = async (page: Page) => {
    if (!applied.has(page)) applied.set(page, set(page));
    await applied.get(page);
    return page;
  };
  // The caller of `newPage` must not get a page before its settings.
  const newPage = context.newPage.bind(context);
  context.newPage = async (options) => apply(await newPage(options));
  context.on('targetcreated', (target: Target) => {
    // Pop-ups, too. A page may be closed before Puppeteer has set it up.
    if (target.type() === 'page')
      target
        .page()
        .then((page) => page && apply(page))
        .catch(() => {});
  });
  return context;
}
