import type { Connector } from '../connect/connector.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { withAbortGrace } from '../shared/abort.js';
import { callback, readOption } from '../shared/options.js';
import type { Callback } from './connected-lease.js';
import { LeaseCall, resolvePool } from './lease-call.js';
import { openLease } from './open-lease.js';
import { readLeaseOptions, runOptions, type RunOptions } from './options.js';
import type { Run } from './run.js';

/**
 * Leases a browser, connects to it, calls `fn` once, always releases the browser, and returns the result of `fn` with the
 * links to the replays of this lease.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment (`BROWSER_POOL_BASE_URL`,
 *   `BROWSER_POOL_ACCESS_TOKEN`).
 * @param options {@link RunOptions}, and the connector of an automation library.
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `InvalidOptionError`; the signal's reason. `runOf(error)` returns the run.
 */
export async function withPooledBrowser<Handles, Value>(
  pool: BrowserPool | string,
  fn: Callback<Handles, Value>,
  { connector, ...options }: RunOptions & { connector: Connector<Handles> },
): Promise<Run<Value>> {
  readOption(callback(), 'fn', fn);
  const settings = readLeaseOptions(runOptions, options, { caller: 'withPooledBrowser', connector });
  const call = new LeaseCall(resolvePool(pool), settings);
  return withAbortGrace(settings.signal, run(call, connector, fn));
}

async function run<Handles, Value>(
  call: LeaseCall,
  connector: Connector<Handles>,
  fn: Callback<Handles, Value>,
): Promise<Run<Value>> {
  const lease = await openLease(call, connector);
  let value: Value;
  try {
    await lease.observeAll();
    value = await lease.call(fn);
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
  const summary = await lease.end({ status: 'ok' });
  call.settings.signal?.throwIfAborted();
  return { value, ...summary };
}
