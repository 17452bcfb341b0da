import type { ConnectOptions } from 'puppeteer-core';
import type { Connector, ContextChoice, Protocol } from '../connect/connector.js';
import { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from '../connect/puppeteer.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/services/kernel.js';
import type { DetachedLease } from './detached-lease.js';
import { attachBrowser as attach, leaseBrowser as lease, type PooledBrowser } from './lease-browser.js';
import type { Callback } from './lease.js';
import type { AttachOptions, HeldLeaseOptions, RunOptions } from './options.js';
import type { Run } from './run.js';
import { withPooledBrowser as run } from './with-pooled-browser.js';

/** Options of `withPooledBrowser` for Puppeteer. */
export interface PuppeteerRunOptions<Choice extends ContextChoice = ContextChoice>
  extends RunOptions<ConnectOptions, Protocol, Choice>, PuppeteerOptions {}
/** Options of `leaseBrowser` for Puppeteer. */
export interface PuppeteerLeaseOptions<Choice extends ContextChoice = ContextChoice>
  extends HeldLeaseOptions<ConnectOptions, Protocol, Choice>, PuppeteerOptions {}
/** Options of `attachBrowser` for Puppeteer. */
export interface PuppeteerAttachOptions<Choice extends ContextChoice = ContextChoice>
  extends AttachOptions<ConnectOptions, Protocol, Choice>, PuppeteerOptions {}

/**
 * Leases a browser, connects Puppeteer to it, calls `fn` once, always releases the browser, and returns the result of `fn`
 * with the links to the replays of this lease. `protocol: 'bidi'` uses WebDriver BiDi.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @param fn The callback, called with `{ browser, page, session, signal }`, and `context` with `context: 'new'`.
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `InvalidOptionError`; the signal's reason. `runOf(error)` returns the run.
 * @example
 *   const { value, replays } = await withPooledBrowser('checkout-tests', ({ page }) => page.title());
 */
export async function withPooledBrowser<
  Value,
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  pool: BrowserPool<Session> | string,
  fn: Callback<PuppeteerHandles<Choice>, Value, Session>,
  options: PuppeteerRunOptions<Choice> = {},
): Promise<Run<Value, Session>> {
  const { puppeteer: library, ...rest } = options;
  return run(pool, fn, { ...rest, connector: connectorFor<Choice>(library) });
}

/**
 * Leases a browser and connects Puppeteer to it, for sessions that outlive a function. The caller must call `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @throws As `withPooledBrowser`, except for the errors of the callback. After a failure nothing stays leased.
 */
export async function leaseBrowser<
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  pool: BrowserPool<Session> | string,
  options: PuppeteerLeaseOptions<Choice> = {},
): Promise<PooledBrowser<PuppeteerHandles<Choice>, Session>> {
  const { puppeteer: library, ...rest } = options;
  return lease(pool, { ...rest, connector: connectorFor<Choice>(library) });
}

/**
 * Continues a detached lease with Puppeteer, in this or another process. The caller must call `release()`.
 *
 * @param detached The result of `detach`, or its `secret`.
 * @throws `ConnectError` if the browser can't be reached, for example because its session has expired: the lease is not
 *   changed; `InvalidOptionError`; the signal's reason.
 */
export async function attachBrowser<
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  detached: DetachedLease | string,
  options: PuppeteerAttachOptions<Choice> = {},
): Promise<PooledBrowser<PuppeteerHandles<Choice>, Session>> {
  const { puppeteer: library, ...rest } = options;
  return attach(detached, { ...rest, connector: connectorFor<Choice>(library) });
}

/** The connector provides a context exactly if the option `context` is `'new'`. */
function connectorFor<Choice extends ContextChoice>(library: PuppeteerOptions['puppeteer']) {
  return puppeteer({ puppeteer: library }) as Connector as Connector<PuppeteerHandles<Choice>>;
}
