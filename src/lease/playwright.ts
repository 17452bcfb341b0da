import type { ConnectOverCDPOptions } from 'playwright-core';
import { playwright, type PlaywrightHandles, type PlaywrightOptions } from '../connect/playwright.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Callback } from './connected-lease.js';
import type { DetachedLease } from './detached-lease.js';
import { attachBrowser as attach, leaseBrowser as lease, type PooledBrowser } from './lease-browser.js';
import type { AttachOptions, HeldLeaseOptions, RunOptions } from './options.js';
import type { Run } from './run.js';
import { withPooledBrowser as run } from './with-pooled-browser.js';

/** Options of `leaseBrowser` for Playwright. @interface */
export type PlaywrightLeaseOptions = HeldLeaseOptions<ConnectOverCDPOptions, 'cdp'> & PlaywrightOptions;
/** Options of `attachBrowser` for Playwright. @interface */
export type PlaywrightAttachOptions = AttachOptions<ConnectOverCDPOptions, 'cdp'> & PlaywrightOptions;
/** Options of `withPooledBrowser` for Playwright. @interface */
export type PlaywrightRunOptions = RunOptions<ConnectOverCDPOptions, 'cdp'> & PlaywrightOptions;

/** `withPooledBrowser` for Playwright: the callback receives `{ browser, context, page, session, signal }`. */
export async function withPooledBrowser<Value>(
  pool: BrowserPool | string,
  fn: Callback<PlaywrightHandles, Value>,
  { chromium, ...options }: PlaywrightRunOptions = {},
): Promise<Run<Value>> {
  return run(pool, fn, { ...options, connector: playwright({ chromium }) });
}

/** `leaseBrowser` for Playwright. */
export async function leaseBrowser(
  pool: BrowserPool | string,
  { chromium, ...options }: PlaywrightLeaseOptions = {},
): Promise<PooledBrowser<PlaywrightHandles>> {
  return lease(pool, { ...options, connector: playwright({ chromium }) });
}

/** `attachBrowser` for Playwright. */
export async function attachBrowser(
  detached: DetachedLease | string,
  { chromium, ...options }: PlaywrightAttachOptions = {},
): Promise<PooledBrowser<PlaywrightHandles>> {
  return attach(detached, { ...options, connector: playwright({ chromium }) });
}
