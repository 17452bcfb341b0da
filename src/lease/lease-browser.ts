import type { Connector } from '../connect/connector.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { openLease } from './open-lease.js';
import type { HeldLeaseOptions } from './options.js';
import { pooledBrowser, type PooledBrowser } from './pooled-browser.js';
import { resolvePool } from './resolve-pool.js';
import { checkOptions } from './settings.js';
import { soonAfterAbort } from './soon-after-abort.js';

/**
 * Leases a browser and connects to it, for sessions that outlive a function. Whoever calls this owes `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of one: then the environment says which service.
 * @throws As `withPooledBrowser` does, up to the callback. On failure nothing stays leased.
 */
export async function leaseBrowser<Handles>(
  pool: BrowserPool | string,
  { connector, ...options }: HeldLeaseOptions & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles>> {
  if ('timeout' in options) {
    const message = 'leaseBrowser has no option timeout: it limits a callback, and there is none here.';
    throw new InvalidOptionError('timeout', message);
  }
  const settings = checkOptions(options, connector, 'leaseBrowser');
  const opening = openLease(resolvePool(pool), connector, settings);
  return pooledBrowser(await soonAfterAbort(settings.signal, opening));
}
