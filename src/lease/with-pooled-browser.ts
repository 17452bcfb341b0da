import type { Connector } from '../connect/connector.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Callback } from './callback.js';
import { openLease } from './open-lease.js';
import type { RunOptions } from './options.js';
import { resolvePool } from './resolve-pool.js';
import { rememberRun, type Run } from './run.js';
import { checkOptions, type Settings } from './settings.js';
import { soonAfterAbort } from './soon-after-abort.js';

/**
 * Leases a browser, connects to it, calls `fn` once, gives the browser back on every path, and returns what `fn`
 * returned with the links to the replays of this lease.
 *
 * @param pool A `BrowserPool`, or the id or name of one: then the environment says which service
 *   (`BROWSER_POOL_BASE_URL`, `BROWSER_POOL_ACCESS_TOKEN`).
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `InvalidOptionError`; the signal's reason. `runOf(error)` gives the run behind it.
 */
export async function withPooledBrowser<Handles, Value>(
  pool: BrowserPool | string,
  fn: Callback<Handles, Value>,
  { connector, ...options }: RunOptions & { connector: Connector<Handles> },
): Promise<Run<Value>> {
  if (typeof fn !== 'function') throw new InvalidOptionError('fn', 'The second argument must be a function.');
  const settings = checkOptions(options, connector, 'withPooledBrowser');
  const run = runOnLease(resolvePool(pool), fn, connector, settings);
  return soonAfterAbort(settings.signal, run);
}

async function runOnLease<Handles, Value>(
  pool: BrowserPool,
  fn: Callback<Handles, Value>,
  connector: Connector<Handles>,
  settings: Settings,
): Promise<Run<Value>> {
  const lease = await openLease(pool, connector, settings);
  let value: Value;
  try {
    value = await lease.call(fn);
  } catch (error) {
    rememberRun(error, await lease.end({ status: 'failed', error }));
    throw error;
  }
  const tail = await lease.end({ status: 'ok' });
  if (settings.signal?.aborted) {
    rememberRun(settings.signal.reason, tail);
    throw settings.signal.reason;
  }
  return { value, ...tail };
}
