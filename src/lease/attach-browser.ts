import type { Connector } from '../connect/connector.js';
import { InvalidOptionError } from '../shared/errors.js';
import { LinkedAbort } from '../shared/abort.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { beginReplays } from './begin-replays.js';
import { readDetachedLease, type DetachedLease } from './detached-lease.js';
import { Lease } from './lease.js';
import { openLink } from './open-link.js';
import type { AttachOptions } from './options.js';
import { OwnedSession } from './owned-session.js';
import { pooledBrowser, type PooledBrowser } from './pooled-browser.js';
import { Recorder } from './recorder.js';
import { resolvePool } from './resolve-pool.js';
import { checkOptions } from './settings.js';
import { soonAfterAbort } from './soon-after-abort.js';

/**
 * Takes up a lease that `detach` let go of, here or in another process: connects to its browser, and owes its release.
 *
 * @param lease What `detach` returned, or the `secret` of it.
 * @throws `ConnectError` when the browser can't be reached, as when its session expired meanwhile: the lease is then
 *   left as it is; `InvalidOptionError`; the signal's reason.
 */
export async function attachBrowser<Handles>(
  lease: DetachedLease | string,
  { connector, pool: given, ...options }: AttachOptions & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles>> {
  const settings = checkOptions(options, connector, 'attachBrowser');
  const { pool: idOrName, baseUrl, session, earlierReplays: earlier } = readDetachedLease(lease);
  const pool = resolvePool(given ?? idOrName);
  checkService(pool, baseUrl);
  const recorder = new Recorder(pool.idOrName, settings.onEvent);
  const abort = new LinkedAbort(settings.signal);
  const owned = new OwnedSession(pool, session, recorder, settings.watch);
  const parts = { pool, settings, recorder, abort };
  const replays = beginReplays(session, { ...parts, earlier });
  try {
    const link = await soonAfterAbort(
      settings.signal,
      openLink(session, { ...parts, connector, isTakenUp: true }),
    );
    return pooledBrowser(new Lease({ ...parts, owned, link, replays, attempt: 1 }));
  } catch (error) {
    replays?.stop();
    abort.dispose();
    await owned.release('leave', settings.releaseTimeout);
    throw error;
  }
}

/** The access token must not go where a handle from elsewhere says. */
function checkService(pool: BrowserPool, baseUrl: string): void {
  if (pool.baseUrl === baseUrl) return;
  throw new InvalidOptionError(
    'pool',
    `The lease is of the service at ${baseUrl}, and the pool of another one. Pass the option pool, or set BROWSER_POOL_BASE_URL.`,
  );
}
