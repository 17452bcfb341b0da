import type { Connector } from '../drivers/connector.js';
import { puppeteer, type PuppeteerHandles, type PuppeteerOptions } from '../drivers/puppeteer.js';
import type { PuppeteerTypes } from '../calls/puppeteer.js';
import type { Pools } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { mapPooledBrowsers as map, type Outcomes } from './map-pooled-browsers.js';
import type { MapOptions } from './options.js';
import type { TaskFacts } from './outcome.js';

/** Options of `mapPooledBrowsers` for Puppeteer. */
export interface PuppeteerMapOptions<Input = unknown, Session extends object = BrowserSession>
  extends MapOptions<PuppeteerTypes, Input, Session>, PuppeteerOptions {}

/**
 * Calls `fn` for every input, on leased browsers that Puppeteer drives, and yields the outcomes. A failed
 * task is an outcome, not an error of the loop. Leaving the loop ends the running tasks and releases all browsers.
 * `await mapPooledBrowsers(…)` needs no loop: it drops the values and resolves to a summary. Do not return the object from an
 * async function, which would await it.
 * `protocol: 'bidi'` uses WebDriver BiDi, with `isolation` `'context'` or `'none'`.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @param inputs An array, or another iterable or async iterable. Inputs are pulled when they are needed.
 * @param fn The task, called once per attempt with `{ browser, context, page, input, index, session, signal, attempt }`.
 * @throws `InvalidOptionError` before the loop. In the loop: `PoolServiceError`, `AcquireTimeoutError`, `ConnectError`,
 *   `CheckpointError`, `TooManyFailuresError`, an error of the inputs, the reason of `signal`.
 * @example
 *   for await (const { status, input } of mapPooledBrowsers('scrapers', urls, titleOf)) console.log(status, input);
 */
export function mapPooledBrowsers<Input, Value, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: (task: PuppeteerHandles<'new'> & TaskFacts<Input, Session>) => Value | PromiseLike<Value>,
  options: PuppeteerMapOptions<Input, Session> = {},
): Outcomes<Input, Value, Session> {
  const { puppeteer: library, ...rest } = options;
  // Every workspace has a context.
  const connector = puppeteer({ puppeteer: library }) as Connector as Connector<PuppeteerHandles<'new'>>;
  return map(pool, inputs, fn, { ...rest, connector });
}
