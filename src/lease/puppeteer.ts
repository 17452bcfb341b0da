import type { ConnectOptions } from 'puppeteer-core';
import type { Connector, ContextChoice, Protocol } from '../connect/connector.js';
import { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from '../connect/puppeteer.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Callback } from './connected-lease.js';
import type { DetachedLease } from './detached-lease.js';
import { attachBrowser as attach, leaseBrowser as lease, type PooledBrowser } from './lease-browser.js';
import type { AttachOptions, HeldLeaseOptions, RunOptions } from './options.js';
import type { Run } from './run.js';
import { withPooledBrowser as run } from './with-pooled-browser.js';

/** Options of `leaseBrowser` for Puppeteer. @interface */
export type PuppeteerLeaseOptions<Choice extends ContextChoice = ContextChoice> = PuppeteerOptions &
  HeldLeaseOptions<ConnectOptions, Protocol, Choice>;
/** Options of `attachBrowser` for Puppeteer. @interface */
export type PuppeteerAttachOptions<Choice extends ContextChoice = ContextChoice> = PuppeteerOptions &
  AttachOptions<ConnectOptions, Protocol, Choice>;
/** Options of `withPooledBrowser` for Puppeteer. @interface */
export type PuppeteerRunOptions<Choice extends ContextChoice = ContextChoice> = PuppeteerOptions &
  RunOptions<ConnectOptions, Protocol, Choice>;

/**
 * `withPooledBrowser` for Puppeteer: the callback receives `{ browser, page, session, signal }`, and `context` with
 * `context: 'new'`. `protocol: 'bidi'` uses WebDriver BiDi.
 */
export async function withPooledBrowser<Value, Choice extends ContextChoice = 'default'>(
  pool: BrowserPool | string,
  fn: Callback<PuppeteerHandles<Choice>, Value>,
  { puppeteer: library, ...options }: PuppeteerRunOptions<Choice> = {},
): Promise<Run<Value>> {
  return run(pool, fn, { ...options, connector: connectorFor<Choice>(library) });
}

/** `leaseBrowser` for Puppeteer. */
export async function leaseBrowser<Choice extends ContextChoice = 'default'>(
  pool: BrowserPool | string,
  { puppeteer: library, ...options }: PuppeteerLeaseOptions<Choice> = {},
): Promise<PooledBrowser<PuppeteerHandles<Choice>>> {
  return lease(pool, { ...options, connector: connectorFor<Choice>(library) });
}

/** `attachBrowser` for Puppeteer. */
export async function attachBrowser<Choice extends ContextChoice = 'default'>(
  detached: DetachedLease | string,
  { puppeteer: library, ...options }: PuppeteerAttachOptions<Choice> = {},
): Promise<PooledBrowser<PuppeteerHandles<Choice>>> {
  return attach(detached, { ...options, connector: connectorFor<Choice>(library) });
}

/** The connector provides a context exactly if the option `context` is `'new'`. */
function connectorFor<Choice extends ContextChoice>(library: PuppeteerOptions['puppeteer']) {
  return puppeteer({ puppeteer: library }) as Connector as Connector<PuppeteerHandles<Choice>>;
}
