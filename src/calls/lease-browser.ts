import type { Connector } from '../drivers/connector.js';
import { factsOf, namesOfFacts, type Callback, type LeaseFacts } from './callback.js';
import { loadDrivers } from './load-drivers.js';
import type { Lease } from '../lease/lease.js';
import type { LibraryTypes } from '../lease/options.js';
import type { DownloadedFile } from '../features/files/options.js';
import type { LeaseFeatures, PooledLease } from '../features/create-features.js';
import type { FeatureFacts } from '../features/options.js';
import { resolvePool, resolvePools, type Pools } from '../pool/browser-pool.js';
import type { Replay } from '../services/browser-service.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { onAbort, withAbortGrace } from '../shared/abort.js';
import { callSite, InvalidOptionError } from '../shared/errors.js';
import { lazy } from '../shared/lazy.js';
import { LeaseExpiredError } from '../shared/lease-errors.js';
import { callback, readOption } from '../shared/options.js';
import { DetachedLease, readDetachedLease } from './detached-lease.js';
import { adviceInside, inside } from './nesting.js';
import {
  attachChecks,
  heldLeaseChecks,
  readConnector,
  readLeaseOptions,
  runChecks,
  sessionLeaseChecks,
  type AttachOptions,
  type HeldLeaseOptions,
  type RunOptions,
  type SessionLeaseOptions,
} from './options.js';
import { reportUncaughtRuns, type Run, type RunSummary } from './run.js';

/** @internal Loads what a lease needs, at the first call: an import of this library loads only the options and the pool. */
export const loadLease = lazy(async () => ({
  ...(await import('../lease/open-lease.js')),
  ...(await import('../lease/attach-lease.js')),
  ...(await import('../features/create-features.js')),
}));

/**
 * Leases a browser, connects to it, calls `fn` once, always releases the browser, and returns the result of `fn` with the
 * links to the replays of this lease.
 *
 * @param pool A `BrowserPool`, the id or name of a pool at the service of the environment (`BROWSER_POOL_BASE_URL`,
 *   `BROWSER_POOL_ACCESS_TOKEN`), or several in the order in which they are asked.
 * @param options {@link RunOptions}, and the connector of an automation library.
 * @throws What `fn` threw, unchanged; `AcquireTimeoutError`, `PoolServiceError`, `ConnectError`, `BrowserLostError`,
 *   `CallbackTimeoutError`, `LeaseExpiredError`, `InvalidOptionError`; the signal's reason. `runOf(error)` returns the run.
 */
export async function withPooledBrowser<Handles, Value, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  fn: (lease: Handles & LeaseFacts<Session>) => Value | PromiseLike<Value>,
  options: RunOptions<LibraryTypes, Session> & { connector: Connector<Handles> },
): Promise<Run<Value, Session>> {
  const fromHere = callSite();
  const caller = 'withPooledBrowser';
  const { connector, rest } = readConnector<Handles, typeof options>(options, caller);
  readOption(callback(), 'fn', fn);
  const settings = readLeaseOptions(runChecks, rest, { caller, connector });
  const pools = resolvePools(pool);
  const advise = adviceInside();
  const opening = loadLease().then(async ({ openLease, createFeatures }) => {
    const features = await createFeatures(settings);
    const addedNames = ['session', 'signal', ...namesOfFacts(features)];
    return openLease({ pools, settings, connector, loadDrivers, advise, features, addedNames });
  });
  return fromHere(withAbortGrace(settings.signal, callAndEnd(opening, fn)));
}

/** Calls the callback with the browser of a lease, and ends the lease. */
async function callAndEnd<Handles, Value, Session extends object>(
  opening: Promise<PooledLease<Handles, Session>>,
  fn: Callback<Handles, Value, Session>,
): Promise<Run<Value, Session>> {
  const lease = await opening;
  let value: Value;
  try {
    await lease.beginRun();
    const facts = factsOf(lease);
    value = await lease.runCallback(inside(lease, (work) => fn({ ...facts, ...work })));
  } catch (error) {
    await lease.end({ status: 'failed', error });
    reportUncaughtRuns();
    throw error;
  }
  const summary = await lease.end({ status: 'ok' });
  // Not the signal: it may abort after the end, in a listener of its event.
  if (lease.failure) throw lease.failure.error;
  return { value, ...summary };
}

/** A leased, connected browser, which `release()` or the end of an `await using` block releases. */
export type PooledBrowser<Handles, Session extends object = BrowserSession> = Handles &
  LeaseFacts<Session> &
  AsyncDisposable & {
    /** URL of a page to watch and control the browser, if there is one. It contains a secret. */
    readonly liveViewUrl: string | undefined;
    /**
     * Calls `fn` with the library's browser and page, when there is a connection.
     *
     * @throws What `fn` throws; `ConnectionDroppedError` if the connection is lost during the call; the reason of `signal`
     *   after the browser is lost.
     */
    use<Value>(fn: (handles: Handles) => Value | PromiseLike<Value>): Promise<Value>;
    /**
     * Replaces the connection, and with it `browser` and `page` of this object.
     * Contexts of the old connection may no longer exist.
     *
     * @throws `BrowserLostError` if the session is over.
     */
    reconnect(): Promise<void>;
    /** The files that have arrived in the folder of the option `downloads` so far. */
    readonly downloads: readonly DownloadedFile[];
    /** Lists the recordings of this lease so far. Never rejects: a service that does not respond has no recordings. */
    replays(): Promise<readonly Replay[]>;
    /**
     * Disconnects and leaves the browser leased. The caller of `attachBrowser` must release it. Its `lifetime` goes on, but nothing ends
     * the lease at that time until a process has attached.
     */
    detach(): Promise<DetachedLease>;
    /** Closes what the lease opened, disconnects and releases the browser, once. Never rejects. */
    release(): Promise<RunSummary<Session>>;
  };

/**
 * Leases a browser and connects to it, for sessions that outlive a function. The caller must call `release()`.
 *
 * @param pool A `BrowserPool`, the id or name of a pool at the service of the environment, or several in the order in which they are
 *   asked.
 * @param options {@link HeldLeaseOptions}, and the connector of an automation library.
 * @throws As `withPooledBrowser`, except for the errors of the callback. After a failure nothing stays leased.
 */
export async function leaseBrowser<Handles, Session extends object = BrowserSession>(
  pool: Pools<Session>,
  options: HeldLeaseOptions<LibraryTypes, Session> & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles, Session>> {
  const fromHere = callSite();
  const { connector, rest } = readConnector<Handles, typeof options>(options, 'leaseBrowser');
  const isOfFixtures = OPENS_CONTEXTS in rest;
  // Errors name what the user has written.
  const caller = isOfFixtures ? 'pooledBrowser' : 'leaseBrowser';
  const settings = readLeaseOptions(heldLeaseChecks, rest, { caller, connector });
  const isOwnContextUsed = isOfFixtures ? false : undefined;
  const advise = adviceInside();
  const plan = { settings, connector, loadDrivers, isOwnContextUsed, advise };
  const pools = resolvePools(pool);
  const opening = loadLease().then(async ({ openLease, createFeatures }) => {
    const features = await createFeatures(settings);
    return openLease({ ...plan, pools, features, addedNames: namesWith(features) });
  });
  return pooledBrowser(await fromHere(withAbortGrace(settings.signal, opening)));
}

/**
 * @internal Leases a browser for another program, which connects by itself. The caller must call `end()`.
 *
 * @param beside What needs a connection beside those of the program.
 */
export async function leaseSession<Session extends object, Handles = never>(
  pool: Pools<Session>,
  options: SessionLeaseOptions<Session>,
  beside?: { readonly connector: Connector<Handles>; readonly exposeNetwork: string | undefined },
): Promise<Lease<Session, LeaseFeatures> | PooledLease<Handles, Session>> {
  const { connector, exposeNetwork } = beside ?? {};
  const read = readLeaseOptions(sessionLeaseChecks, options, { caller: 'leaseSession' });
  const settings = { ...read, exposeNetwork, reconnect: 'eager' } as const;
  const { openLease, createFeatures } = await loadLease();
  const features = await createFeatures(settings);
  const plan = { pools: resolvePools(pool), settings, features, loadDrivers, advise: adviceInside() };
  return connector ? openLease({ ...plan, connector }) : openLease(plan);
}

/**
 * Continues a detached lease, in this or another process: connects to its browser. The caller must call `release()`.
 *
 * If several attach to one lease, the first release ends the lease. Before a later one cleans or releases the browser, which may belong
 * to another lease then, the service is asked whose it is, which needs a service that shows the tags or the name of a lease.
 *
 * @param lease The result of `detach`, or its `secret`.
 * @param options {@link AttachOptions}, and the connector of an automation library.
 * @throws `ConnectError` if the browser can't be reached, for example because its session has expired: the lease stays as
 *   it is; `LeaseExpiredError` if its `lifetime` is over: the browser is released; `InvalidOptionError`; the signal's reason.
 */
export async function attachBrowser<Handles, Session extends object = BrowserSession>(
  lease: DetachedLease | string,
  options: AttachOptions<LibraryTypes, Session> & { connector: Connector<Handles> },
): Promise<PooledBrowser<Handles, Session>> {
  const fromHere = callSite();
  const caller = 'attachBrowser';
  const { connector, rest: all } = readConnector<Handles, typeof options>(options, caller);
  const { pool: given, ...rest } = all;
  const settings = readLeaseOptions(attachChecks, rest, { caller, connector });
  const { pool: idOrName, baseUrl, ...detachedState } = readDetachedLease<Session>(lease);
  const pool = resolvePool<Session>(given ?? idOrName);
  // The access token must not be sent to another service that the lease names.
  if (pool.baseUrl !== baseUrl) {
    throw new InvalidOptionError(
      'pool',
      `The lease belongs to the service at ${baseUrl}, and the pool to another one. Pass the option pool, or set BROWSER_POOL_BASE_URL.`,
    );
  }
  const plan = { pools: [pool], settings, connector, loadDrivers } as const;
  const attaching = loadLease().then(async ({ attachLease, createFeatures }) => {
    const features = await createFeatures(settings);
    return attachLease({ ...plan, features, addedNames: namesWith(features) }, detachedState);
  });
  return pooledBrowser(await fromHere(withAbortGrace(settings.signal, attaching)));
}

/** @internal An option of the fixtures, whose tests open contexts of their own. The same in each copy of this library. */
export const OPENS_CONTEXTS: unique symbol = Symbol.for('pooled-browser.opens-contexts');

/** The same in each copy of this library. */
const LEASE: unique symbol = Symbol.for('pooled-browser.lease');

/** @internal Returns the lease behind its public object, for the fixtures. */
export function leaseOf<Handles, Session extends object>(
  browser: PooledBrowser<Handles, Session>,
): PooledLease<Handles, Session> {
  const { [LEASE]: lease } = browser as { [LEASE]?: () => PooledLease<Handles, Session> };
  if (lease) return lease();
  throw new InvalidOptionError('leaseBrowser', 'leaseBrowser must return a browser of pooled-browser.');
}

/** What this library adds to the handles: a handle of such a name would replace it. */
const NAMES = Object.keys({
  session: 0,
  signal: 0,
  liveViewUrl: 0,
  use: 0,
  reconnect: 0,
  downloads: 0,
  replays: 0,
  detach: 0,
  release: 0,
} satisfies Record<Exclude<keyof PooledBrowser<unknown>, symbol | keyof FeatureFacts>, 0>);

function namesWith(features: LeaseFeatures): string[] {
  return [...NAMES, ...namesOfFacts(features)];
}

/** The public object of a lease. Its handles are always those of the present connection. */
function pooledBrowser<Handles, Session extends object>(
  lease: PooledLease<Handles, Session>,
): PooledBrowser<Handles, Session> {
  const { link, features } = lease;
  const { session, signal, grant, pool } = lease.context;
  const release = () => lease.end({ status: signal.aborted ? 'failed' : 'ok', error: signal.reason });
  // The holder may never come back.
  onAbort(signal, () => {
    if (signal.reason instanceof LeaseExpiredError) void release();
  });
  const browser = {
    session,
    signal,
    ...factsOf(lease),
    use: <Value>(fn: (handles: Handles) => Value | PromiseLike<Value>) => link.use(fn),
    reconnect: () => link.renew(),
    downloads: features.downloads.files,
    replays: async () => features.replays?.soFar() ?? [],
    detach: async () => {
      const { idOrName, baseUrl } = pool.api;
      return new DetachedLease({ pool: idOrName, baseUrl, ...(await lease.detach()) });
    },
    release,
    [Symbol.asyncDispose]: async () => void (await release()),
  };
  for (const name of Object.keys(lease.handles as object)) {
    const get = () => lease.handles[name as keyof Handles];
    Object.defineProperty(browser, name, { get, enumerable: true });
  }
  // A function: `inspect` can show the secrets of hidden fields, too.
  Object.defineProperty(browser, LEASE, { value: () => lease });
  // Not enumerable: `inspect` and JSON would show its secret.
  Object.defineProperty(browser, 'liveViewUrl', { get: () => grant.liveViewUrl });
  return browser as unknown as PooledBrowser<Handles, Session>;
}
