import type { Connector } from '../connect/connector.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { Replay } from '../service/wire.js';
import { withAbortGrace } from '../shared/abort.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { ArtifactCollector, ObservedPart } from './artifacts.js';
import { ConnectedLease, type LeaseFacts } from './connected-lease.js';
import { readDetachedLease, type DetachedLease } from './detached-lease.js';
import { LeaseCall, resolvePool } from './lease-call.js';
import { Lease } from './lease.js';
import { acquireLease, openLease } from './open-lease.js';
import {
  attachOptions,
  heldLeaseOptions,
  readLeaseOptions,
  sessionLeaseOptions,
  type ArtifactsSettings,
  type AttachOptions,
  type HeldLeaseOptions,
  type SessionLeaseOptions,
} from './options.js';
import type { RunSummary } from './run.js';

/** A leased, connected browser, which `release()` or the end of an `await using` block releases. */
export type PooledBrowser<Handles> = Handles &
  LeaseFacts &
  AsyncDisposable & {
    /** URL of a page to watch and control the browser; contains a JWT. Only for browsers that are not headless. */
    readonly liveViewUrl: string | undefined;
    /**
     * Waits for a connection (option `reconnect`), and calls `fn` with the library's browser and page.
     *
     * @throws What `fn` throws; `ConnectionDroppedError` if the connection is lost during the call; the reason of `signal`
     *   after the browser is lost.
     */
    use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value>;
    /**
     * Replaces the connection within the lease; `browser` and `page` of this object are then those of the new one.
     * Contexts of the old connection may be gone, and the browser is not reused after the lease.
     *
     * @throws `BrowserLostError` if the session is over.
     */
    reconnect(): Promise<void>;
    /** Lists the recordings of this lease so far. Never rejects: a service that does not respond has no recordings. */
    replays(): Promise<readonly Replay[]>;
    /** Disconnects and leaves the browser leased. The caller of `attachBrowser` must release it. */
    detach(): Promise<DetachedLease>;
    /** Closes what the lease opened, disconnects and releases the browser, once. Never rejects. */
    release(): Promise<RunSummary>;
  };

/**
 * Leases a browser and connects to it, for sessions that outlive a function. The caller must call `release()`.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment.
 * @param options {@link HeldLeaseOptions}, and the connector of an automation library.
 * @throws As `withPooledBrowser`, except for the errors of the callback. After a failure nothing stays leased.
 */
export async function leaseBrowser<Handles>(
  pool: BrowserPool | string,
  { connector, ...options }: HeldLeaseOptions & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles>> {
  const settings = readLeaseOptions(heldLeaseOptions, options, { caller: 'leaseBrowser', connector });
  const call = new LeaseCall(resolvePool(pool), settings);
  return pooledBrowser(await withAbortGrace(settings.signal, openLease(call, connector)));
}

/** Leases a browser without connecting to it, for another program. The caller must call `end()`. */
export async function leaseSession(pool: BrowserPool, options: SessionLeaseOptions): Promise<Lease> {
  const settings = readLeaseOptions(sessionLeaseOptions, options, { caller: 'leaseSession' });
  return acquireLease(new LeaseCall(pool, settings));
}

/**
 * Continues a detached lease, in this or another process: connects to its browser. The caller must call `release()`.
 *
 * @param lease The result of `detach`, or its `secret`.
 * @param options {@link AttachOptions}, and the connector of an automation library.
 * @throws `ConnectError` if the browser can't be reached, for example because its session has expired: the lease stays as
 *   it is; `InvalidOptionError`; the signal's reason.
 */
export async function attachBrowser<Handles>(
  lease: DetachedLease | string,
  { connector, pool: given, ...options }: AttachOptions & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles>> {
  const settings = readLeaseOptions(attachOptions, options, { caller: 'attachBrowser', connector });
  const { pool: idOrName, baseUrl, session, earlierReplays } = readDetachedLease(lease);
  const pool = resolvePool(given ?? idOrName);
  expectService(pool, baseUrl);
  const call = new LeaseCall(pool, settings);
  const held = new Lease(call, session, { attempt: 1, earlierReplays });
  try {
    const connecting = ConnectedLease.open(held, connector, { isAttached: true });
    return pooledBrowser(await withAbortGrace(settings.signal, connecting));
  } catch (error) {
    held.replays?.stop();
    await held.end({ status: 'failed', error, leave: true });
    throw error;
  }
}

/** The access token must not be sent to another service that the lease names. */
function expectService(pool: BrowserPool, baseUrl: string): void {
  if (pool.baseUrl === baseUrl) return;
  throw new InvalidOptionError(
    'pool',
    `The lease belongs to the service at ${baseUrl}, and the pool to another one. Pass the option pool, or set BROWSER_POOL_BASE_URL.`,
  );
}

const OBSERVE: unique symbol = Symbol('pooled-browser.observe');

/**
 * Begins to collect artifacts of some pages, for the fixtures. Resolves to undefined for the lease of another copy of
 * this library.
 */
export async function observeBrowser<Handles>(
  lease: object,
  part: ObservedPart<Handles>,
  options: ArtifactsSettings,
): Promise<ArtifactCollector | undefined> {
  const { [OBSERVE]: observe } = lease as { [OBSERVE]?: ConnectedLease<Handles>['observe'] };
  return observe?.(part, options);
}

/** The public object of a lease. Its handles are always those of the present connection. */
function pooledBrowser<Handles>(connected: ConnectedLease<Handles>): PooledBrowser<Handles> {
  const { session, signal, lease, link } = connected;
  const release = () => connected.end({ status: signal.aborted ? 'failed' : 'ok', error: signal.reason });
  const browser = {
    session,
    signal,
    use: <Value>(fn: (handles: Handles) => Value | PromiseLike<Value>) => link.use(fn),
    reconnect: () => link.renew(),
    replays: async () => lease.replays?.soFar() ?? [],
    detach: () => connected.detach(),
    release,
    [Symbol.asyncDispose]: async () => void (await release()),
  };
  for (const name of Object.keys(connected.handles as object)) {
    const get = () => connected.handles[name as keyof Handles];
    Object.defineProperty(browser, name, { get, enumerable: true });
  }
  Object.defineProperty(browser, OBSERVE, { value: connected.observe.bind(connected) });
  // Not enumerable: `inspect` and JSON would show its JWT.
  Object.defineProperty(browser, 'liveViewUrl', { get: () => session.browser_live_view_url });
  return browser as unknown as PooledBrowser<Handles>;
}
