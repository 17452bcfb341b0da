import type { Connector } from '../connect/connector.js';
import { InvalidOptionError } from '../shared/errors.js';
import { resolvePool } from '../lease/resolve-pool.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { Inputs } from './inputs.js';
import { Job } from './job.js';
import type { MapOptions } from './options.js';
import type { Outcome, TaskCallback } from './outcome.js';
import { checkMapOptions } from './settings.js';

/** Outcomes, for `for await`. Leaving the loop ends the job and gives every browser back. */
export type Outcomes<Input, Value> = AsyncIterableIterator<Outcome<Input, Value>, undefined, void> &
  AsyncDisposable;

/**
 * Calls `fn` for every input, on browsers leased from a pool, and hands out what becomes of each. Nothing is leased or
 * pulled before the loop begins; the inputs are pulled as they are needed, and wait while the loop does.
 *
 * A task that fails is an outcome, not an error of the loop. Leaving the loop, and an abort of `signal`, ends every task
 * at work, gives the browsers back and closes the inputs. Inputs that were at work then have no outcome. A browser that
 * is granted when nobody needs it any more is given back as it comes; `pool.close()` waits for that.
 *
 * @param pool A `BrowserPool`, or the id or name of one: then the environment says which service.
 * @param inputs An array, or another iterable or async iterable. What it throws ends the loop once the tasks that were
 *   begun have their outcomes.
 * @throws In the loop: `PoolServiceError` when the service refuses; `AcquireTimeoutError` and `ConnectError` when no
 *   browser can be had or used at all; `CheckpointError`; the signal's reason. At once: `InvalidOptionError`.
 */
export function mapPooledBrowsers<Handles, Input, Value>(
  pool: BrowserPool | string,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: TaskCallback<Handles, Input, Value>,
  { connector, ...options }: MapOptions & { connector: Connector<Handles> },
): Outcomes<Input, Value> {
  if (typeof fn !== 'function') throw new InvalidOptionError('fn', 'The third argument must be a function.');
  const settings = checkMapOptions(options, connector);
  const job = new Job({ pool: resolvePool(pool), connector, inputs: new Inputs(inputs), fn, settings });
  const outcomes: Outcomes<Input, Value> = {
    next: () => job.next(),
    return: async () => {
      await job.end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => outcomes,
    [Symbol.asyncDispose]: () => job.end(),
  };
  return outcomes;
}
