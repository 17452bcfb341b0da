import { playwright, type PlaywrightHandles, type PlaywrightOptions } from '../drivers/playwright.js';
import type { PlaywrightTypes } from '../calls/playwright.js';
import type { Pools } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { mapPooledBrowsers as map, type Outcomes } from './map-pooled-browsers.js';
import type { MapOptions } from './options.js';
import type { TaskFacts } from './outcome.js';

/** Options of `mapPooledBrowsers` for Playwright. */
export interface PlaywrightMapOptions<Input = unknown, Session extends object = BrowserSession>
  extends MapOptions<PlaywrightTypes, Input, Session>, PlaywrightOptions {}

/**
 * Calls `fn` for every input, on leased browsers that Playwright drives, and yields the outcomes. A failed
 * task is an outcome, not an error of the loop. Leaving the loop ends the running tasks and releases all browsers.
 * `await mapPooledBrowsers(…)` needs no loop: it drops the values and resolves to a summary. Do not return the object from an
 * async function, which would await it.
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
  fn: (task: PlaywrightHandles & TaskFacts<Input, Session>) => Value | PromiseLike<Value>,
  options: PlaywrightMapOptions<Input, Session> = {},
): Outcomes<Input, Value, Session> {
  const { chromium, ...rest } = options;
  return map(pool, inputs, fn, { ...rest, connector: playwright({ chromium }) });
}
