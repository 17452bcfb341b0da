import type { BrowserContextOptions, ConnectOverCDPOptions } from 'playwright-core';
import { playwright, type PlaywrightHandles, type PlaywrightOptions } from '../drivers/playwright.js';
import type { Pools } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import type { DetachedLease } from './detached-lease.js';
import {
  attachBrowser as attach,
  leaseBrowser as lease,
  withPooledBrowser as callWithBrowser,
  type PooledBrowser,
} from './lease-browser.js';
import type { LibraryTypes } from '../lease/options.js';
import type { LeaseFacts } from './callback.js';
import type { AttachOptions, HeldLeaseOptions, RunOptions } from './options.js';
import type { Run } from './run.js';

/** The types of Playwright's options. */
export interface PlaywrightTypes extends LibraryTypes {
  connectOptions: ConnectOverCDPOptions;
  contextOptions: BrowserContextOptions;
  protocol: 'cdp';
}
/** Options of `withPooledBrowser` for Playwright: those of {@link RunOptions}, which has their groups, and `chromium`. */
export interface PlaywrightRunOptions<Session extends object = BrowserSession>
  extends RunOptions<PlaywrightTypes, Session>, PlaywrightOptions {}
/** Options of `leaseBrowser` for Playwright. */
export interface PlaywrightLeaseOptions<Session extends object = BrowserSession>
  extends HeldLeaseOptions<PlaywrightTypes, Session>, PlaywrightOptions {}
/** Options of `attachBrowser` for Playwright. */
export interface PlaywrightAttachOptions<Session extends object = BrowserSession>
  extends AttachOptions<PlaywrightTypes, Session>, PlaywrightOptions {}

/**
 * Calls `fn` once with a leased browser that Playwright drives, and always releases the browser. Returns the
 * value of `fn` with the links to the replays of this lease.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @param fn The callback, called with `{ browser, context, page, session, signal }`.
 * @param options Most calls need at most `replays`, `timeout`, `acquireTimeout`, `contextOptions` and `release`. All of them, in
 *   groups: {@link RunOptions}.
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `LeaseExpiredError`, `InvalidOptionError`; the signal's reason. `runOf(error)` returns the run.
 * @example
 *   const { value, replays } = await withPooledBrowser('checkout-tests', ({ page }) => page.title());
 */
export async function withPooledBrowser<Value, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  fn: (lease: PlaywrightHandles & LeaseFacts<Session>) => Value | PromiseLike<Value>,
  options: PlaywrightRunOptions<Session> = {},
): Promise<Run<Value, Session>> {
  const { chromium, ...rest } = options;
  return callWithBrowser(pool, fn, { ...rest, connector: playwright({ chromium }) });
}

/**
 * Leases a browser and connects Playwright to it, for sessions that outlive a function. The caller must call `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @throws As `withPooledBrowser`, except for the errors of the callback. After a failure nothing stays leased.
 */
export async function leaseBrowser<Session extends object = BrowserSession>(
  pool: Pools<Session>,
  options: PlaywrightLeaseOptions<Session> = {},
): Promise<PooledBrowser<PlaywrightHandles, Session>> {
  const { chromium, ...rest } = options;
  return lease(pool, { ...rest, connector: playwright({ chromium }) });
}

/**
 * Continues a detached lease with Playwright, in this or another process. The caller must call `release()`.
 *
 * @param detached The result of `detach`, or its `secret`.
 * @throws `ConnectError` if the browser can't be reached, for example because its session has expired: the lease is not
 *   changed; `LeaseExpiredError` if its `lifetime` is over: the browser is released; `InvalidOptionError`; the signal's reason.
 */
export async function attachBrowser<Session extends object = BrowserSession>(
  detached: DetachedLease | string,
  options: PlaywrightAttachOptions<Session> = {},
): Promise<PooledBrowser<PlaywrightHandles, Session>> {
  const { chromium, ...rest } = options;
  return attach(detached, { ...rest, connector: playwright({ chromium }) });
}
