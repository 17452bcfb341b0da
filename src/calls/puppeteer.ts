import type { ConnectOptions } from 'puppeteer-core';
import type { ContextChoice } from '../drivers/connector.js';
import { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from '../drivers/puppeteer.js';
import type { PuppeteerContextOptions } from '../drivers/puppeteer-context.js';
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
import type { Callback, LeaseFacts } from './callback.js';
import type { AttachOptions, HeldLeaseOptions, RunOptions } from './options.js';
import type { Run } from './run.js';

/** The types of Puppeteer's options. */
export interface PuppeteerTypes<Choice extends ContextChoice = ContextChoice> extends LibraryTypes {
  connectOptions: ConnectOptions;
  contextOptions: PuppeteerContextOptions;
  context: Choice;
}
/** Options of `withPooledBrowser` for Puppeteer: those of {@link RunOptions}, which has their groups, and `puppeteer`. */
export interface PuppeteerRunOptions<
  Choice extends ContextChoice = ContextChoice,
  Session extends object = BrowserSession,
>
  extends RunOptions<PuppeteerTypes<Choice>, Session>, PuppeteerOptions {}
/** Options of `leaseBrowser` for Puppeteer. */
export interface PuppeteerLeaseOptions<
  Choice extends ContextChoice = ContextChoice,
  Session extends object = BrowserSession,
>
  extends HeldLeaseOptions<PuppeteerTypes<Choice>, Session>, PuppeteerOptions {}
/** Options of `attachBrowser` for Puppeteer. */
export interface PuppeteerAttachOptions<
  Choice extends ContextChoice = ContextChoice,
  Session extends object = BrowserSession,
>
  extends AttachOptions<PuppeteerTypes<Choice>, Session>, PuppeteerOptions {}

/** @inline */
interface OwnContext {
  /** With context options, there is a new context. */
  contextOptions: PuppeteerContextOptions;
}

/**
 * Calls `fn` once with a leased browser that Puppeteer drives, and always releases the browser. Returns the
 * value of `fn` with the links to the replays of this lease. `protocol: 'bidi'` uses WebDriver BiDi.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @param fn The callback, called with `{ browser, page, session, signal }`, and `context` with `context: 'new'` or `contextOptions`.
 * @param options Most calls need at most `replays`, `timeout`, `acquireTimeout`, `contextOptions` and `release`. All of them, in
 *   groups: {@link RunOptions}.
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `LeaseExpiredError`, `InvalidOptionError`; the signal's reason. `runOf(error)` returns the run.
 * @example
 *   const { value, replays } = await withPooledBrowser('checkout-tests', ({ page }) => page.title());
 */
export function withPooledBrowser<Value, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  fn: (lease: PuppeteerHandles<'new'> & LeaseFacts<Session>) => Value | PromiseLike<Value>,
  options: PuppeteerRunOptions<'new', Session> & OwnContext,
): Promise<Run<Value, Session>>;
export function withPooledBrowser<
  Value,
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  pool: Pools<Session>,
  fn: (lease: PuppeteerHandles<Choice> & LeaseFacts<Session>) => Value | PromiseLike<Value>,
  options?: PuppeteerRunOptions<Choice, Session>,
): Promise<Run<Value, Session>>;
export async function withPooledBrowser<Value, Session extends object>(
  pool: Pools<Session>,
  fn: Callback<never, Value, Session>,
  { puppeteer: library, ...options }: PuppeteerRunOptions<ContextChoice, Session> = {},
): Promise<Run<Value, Session>> {
  // The handles have a context exactly if the options ask for a new one.
  const callback = fn as Callback<PuppeteerHandles, Value, Session>;
  return callWithBrowser(pool, callback, { ...options, connector: puppeteer({ puppeteer: library }) });
}

/**
 * Leases a browser and connects Puppeteer to it, for sessions that outlive a function. The caller must call `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @throws As `withPooledBrowser`, except for the errors of the callback. After a failure nothing stays leased.
 */
export function leaseBrowser<Session extends object = BrowserSession>(
  pool: Pools<Session>,
  options: PuppeteerLeaseOptions<'new', Session> & OwnContext,
): Promise<PooledBrowser<PuppeteerHandles<'new'>, Session>>;
export function leaseBrowser<
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  pool: Pools<Session>,
  options?: PuppeteerLeaseOptions<Choice, Session>,
): Promise<PooledBrowser<PuppeteerHandles<Choice>, Session>>;
export async function leaseBrowser<Session extends object>(
  pool: Pools<Session>,
  { puppeteer: library, ...options }: PuppeteerLeaseOptions<ContextChoice, Session> = {},
): Promise<PooledBrowser<PuppeteerHandles, Session>> {
  return lease(pool, { ...options, connector: puppeteer({ puppeteer: library }) });
}

/**
 * Continues a detached lease with Puppeteer, in this or another process. The caller must call `release()`.
 *
 * @param detached The result of `detach`, or its `secret`.
 * @throws `ConnectError` if the browser can't be reached, for example because its session has expired: the lease is not
 *   changed; `LeaseExpiredError` if its `lifetime` is over: the browser is released; `InvalidOptionError`; the signal's reason.
 */
export function attachBrowser<Session extends object = BrowserSession>(
  detached: DetachedLease | string,
  options: PuppeteerAttachOptions<'new', Session> & OwnContext,
): Promise<PooledBrowser<PuppeteerHandles<'new'>, Session>>;
export function attachBrowser<
  Choice extends ContextChoice = 'default',
  Session extends object = BrowserSession,
>(
  detached: DetachedLease | string,
  options?: PuppeteerAttachOptions<Choice, Session>,
): Promise<PooledBrowser<PuppeteerHandles<Choice>, Session>>;
export async function attachBrowser<Session extends object>(
  detached: DetachedLease | string,
  { puppeteer: library, ...options }: PuppeteerAttachOptions<ContextChoice, Session> = {},
): Promise<PooledBrowser<PuppeteerHandles, Session>> {
  return attach(detached, { ...options, connector: puppeteer({ puppeteer: library }) });
}
