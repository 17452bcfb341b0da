import type { Connector } from '../connect/connector.js';
import { resolvePool, type BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/services/kernel.js';
import { withAbortGrace } from '../shared/abort.js';
import { callSite } from '../shared/errors.js';
import { callback, readOption } from '../shared/options.js';
import type { Callback, LeaseFacts, LeasePlan } from './lease.js';
import { loadLease } from './load-lease.js';
import { readLeaseOptions, runChecks, type RunOptions } from './options.js';
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
export async function withPooledBrowser<Handles, Value, Session extends object = BrowserSession>(
  pool: BrowserPool<Session> | string,
  fn: (lease: Handles & LeaseFacts<Session>) => Value | PromiseLike<Value>,
  options: RunOptions & { connector: Connector<Handles> },
): Promise<Run<Value, Session>> {
  const fromHere = callSite();
  const { connector, ...rest } = options;
  readOption(callback(), 'fn', fn);
  const settings = readLeaseOptions(runChecks, rest, { caller: 'withPooledBrowser', connector });
  const plan = { pool: resolvePool(pool), settings, connector };
  const running = run(plan, fn as Callback<Handles, Value>);
  return fromHere(withAbortGrace(settings.signal, running)) as Promise<Run<Value, Session>>;
}

async function run<Handles, Value>(
  plan: LeasePlan<Handles>,
  fn: Callback<Handles, Value>,
): Promise<Run<Value, object>> {
  const { Lease } = await loadLease();
  const lease = await Lease.open(plan);
  let value: Value;
  try {
    await lease.observeAll();
    value = await lease.call(fn);
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
  const summary = await lease.end({ status: 'ok' });
  plan.settings.signal?.throwIfAborted();
  return { value, ...summary };
}
