import { accessSync, constants } from 'node:fs';
import type { BrowserContextOptions } from 'playwright-core';
import { InvalidOptionError } from '../shared/errors.js';
import { OF_BROWSER, refuseUnknown } from './context-options.js';

const NAMES = {
  acceptDownloads: 0,
  baseURL: 0,
  bypassCSP: 0,
  clientCertificates: 0,
  colorScheme: 0,
  contrast: 0,
  deviceScaleFactor: 0,
  extraHTTPHeaders: 0,
  forcedColors: 0,
  geolocation: 0,
  hasTouch: 0,
  httpCredentials: 0,
  ignoreHTTPSErrors: 0,
  isMobile: 0,
  javaScriptEnabled: 0,
  locale: 0,
  logger: 0,
  offline: 0,
  permissions: 0,
  proxy: 0,
  recordHar: 0,
  recordVideo: 0,
  reducedMotion: 0,
  screen: 0,
  serviceWorkers: 0,
  storageState: 0,
  strictSelectors: 0,
  timezoneId: 0,
  userAgent: 0,
  viewport: 0,
} satisfies Record<keyof BrowserContextOptions, 0>;

const KNOWN = {
  library: 'Playwright',
  names: Object.keys(NAMES),
  missing: {
    args: OF_BROWSER,
    channel: OF_BROWSER,
    executablePath: OF_BROWSER,
    headless: OF_BROWSER,
    cookies: 'Pass storageState: { cookies, origins: [] }.',
    credentials: 'Pass httpCredentials: { username, password }.',
    downloadBehavior: 'Pass acceptDownloads.',
    headers: 'Pass extraHTTPHeaders.',
    proxyBypassList: 'Pass proxy: { server, bypass }.',
    proxyServer: 'Pass proxy: { server }.',
  },
};

/** Checks what Playwright would ignore, or refuse only after a browser was leased. */
export function checkPlaywrightContext(options: BrowserContextOptions): void {
  refuseUnknown(options, KNOWN);
  const { storageState } = options;
  if (typeof storageState === 'string') expectFile(storageState);
}

function expectFile(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    const advice = 'Sign in once, and store the state there: context.storageState({ path }).';
    const message = `The file ${path} of storageState can't be read. ${advice}`;
    throw new InvalidOptionError('contextOptions.storageState', message, { cause });
  }
}

/** Without a viewport, a context has the size of the window, as the pool configured it. */
export function withWindowSize(options: BrowserContextOptions = {}): BrowserContextOptions {
  const { isMobile, deviceScaleFactor } = options;
  // Playwright refuses these without a viewport.
  const needsViewport = isMobile === true || deviceScaleFactor !== undefined;
  return needsViewport ? options : { viewport: null, ...options };
}
