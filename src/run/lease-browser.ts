import type { Connector } from '../connect/connector.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { LeaseFacts } from './callback.js';
import { openLease } from './open-lease.js';
import type { LeaseOptions } from './options.js';
import { resolvePool } from './resolve-pool.js';
import type { RunTail } from './run.js';
import { checkOptions } from './settings.js';
import { soonAfterAbort } from './soon-after-abort.js';

/** A leased, connected browser that is given back by `release`, or at the end of the block with `await using`. */
export type PooledBrowser<Handles> = Handles &
  LeaseFacts &
  AsyncDisposable & {
    /**
     * Closes what the lease opened, disconnects, gives the browser back, and tells what is left: replays, times.
     * However often it is called, it happens once. Never rejects.
     */
    release(): Promise<RunTail>;
  };

/**
 * Leases a browser and connects to it, for sessions that outlive a function. Whoever calls this owes `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of one: then the environment says which service.
 * @throws As `withPooledBrowser` does, up to the callback. On failure nothing stays leased.
 */
export async function leaseBrowser<Handles>(
  pool: BrowserPool | string,
  { connector, ...options }: LeaseOptions & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles>> {
  const settings = checkOptions(options, connector, 'leaseBrowser');
  const opening = openLease(resolvePool(pool), connector, settings);
  const lease = await soonAfterAbort(settings.signal, opening);
  const release = () =>
    lease.end({ status: lease.signal.aborted ? 'failed' : 'ok', error: lease.signal.reason });
  return {
    ...lease.handles,
    session: lease.session,
    signal: lease.signal,
    attempt: lease.attempt,
    release,
    [Symbol.asyncDispose]: async () => void (await release()),
  };
}
