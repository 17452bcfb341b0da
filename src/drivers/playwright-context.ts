import { accessSync, constants } from 'node:fs';
import type { BrowserContextOptions } from 'playwright-core';
import { InvalidOptionError } from '../shared/errors.js';
import { OF_BROWSER, PLAYWRIGHT_OPTIONS, refuseUnknown } from './context-options.js';

const KNOWN = {
  library: 'Playwright',
  names: PLAYWRIGHT_OPTIONS,
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
