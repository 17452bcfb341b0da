import { verifyGrant, verifyPool } from './verify-connection.js';
import { unreachable } from '../net/reachability.js';
import { refusesUpgrade } from '../net/status.js';
import type { PoolCore } from '../pool/pool-core.js';
import { verifyLease } from '../services/check-service.js';
import { raceAbort } from '../shared/abort.js';
import { InvalidOptionError } from '../shared/errors.js';
import { ConnectError } from '../shared/lease-errors.js';
import { Acquisition, NO_REQUESTS, type AcquireOrder } from './acquire.js';
import { tellReasons } from './acquire-errors.js';
import { Call } from './call.js';
import type { CallContext } from './context.js';
import type { LeaseStep } from './events.js';
import type { FeatureSet } from './feature.js';
import { HeldBrowser } from './held-browser.js';
import { ConnectedLease, Lease } from './lease.js';
import { Link, prepareConnect } from './link.js';
import type { Outcome } from './next-attempt.js';
import type { ConnectedPlan, LeasePlan } from './plan.js';
import type { FailedLease } from './summary.js';

/**
 * Acquires a browser and connects to it. A browser that can't be reached is released for destruction, and another one is
 * leased. After a failure nothing stays leased, and the call has ended:
 *
 * ```
 * acquiring ─▶ leased ─▶ connected ─▶ ending ─▶ ended
 *     ▲           │
 *     └───────────┘ the browser can't be reached
 * ```
 *
 * Without a connector, another program connects. What a lease does besides is the work of its features.
 */
export function openLease<Handles, Session extends object, Features extends FeatureSet>(
  plan: ConnectedPlan<Handles, Session, Features>,
): Promise<ConnectedLease<Handles, Session, Features>>;
export function openLease<Session extends object, Features extends FeatureSet>(
  plan: LeasePlan<Session, Features>,
): Promise<Lease<Session, Features>>;
export async function openLease<Session extends object, Features extends FeatureSet>(
  plan: LeasePlan<Session, Features>,
): Promise<Lease<Session, Features>> {
  const call = new Call(plan);
  const { pools, hooks, abort } = call;
  let acquisition: Acquisition<Session> | undefined;
  let tried: TriedBrowser<Session, Features> = {};
  try {
    abort.throwIfAborted();
    expectUsable(call);
    await hooks.prepare();
    acquisition = new Acquisition(orderOf(call));
    if (plan.connector) prepareConnect(pools[0], plan.connector, plan.loadDrivers).catch(call.context.abort);
    // One browser after another, until one can be reached.
    for (let attempt = 1; !tried.lease; attempt++) {
      tried = await tryBrowser(call, acquisition, attempt, tried.outcome);
      if (tried.failure) throw tried.failure.error;
    }
  } catch (error) {
    const { counts = NO_REQUESTS, pool = pools[0].idOrName } = acquisition ?? {};
    call.finish({ ...tried.lost, ...counts, pool }, { error });
    throw error;
  } finally {
    acquisition?.dispose();
  }
  const { lease } = tried;
  call.endWithPool(lease);
  try {
    if (plan.isForTasks !== true) await raceAbort(hooks.begin(lease.work), abort.signal);
    return lease;
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
}

/** What became of one leased browser. */
interface TriedBrowser<Session extends object, Features extends FeatureSet> {
  readonly lease?: Lease<Session, Features>;
  /** It could not be reached. */
  readonly lost?: Pick<FailedLease<Session>, 'session' | 'released'>;
  /** What that shows about its pool. */
  readonly outcome?: Outcome;
  /** It ends the call. */
  readonly failure?: { readonly error: unknown };
}

/**
 * Leases a browser and connects to it.
 *
 * @param before What the browser before it has shown.
 */
async function tryBrowser<Session extends object, Features extends FeatureSet>(
  call: Call<Session, Features>,
  requests: Acquisition<Session>,
  attempt: number,
  before: Outcome | undefined,
): Promise<TriedBrowser<Session, Features>> {
  const { time, emit: emitAny } = call.context;
  const emit: CallContext<LeaseStep<Session> & { pool: string }>['emit'] = emitAny;
  const acquired = await time(
    'acquire',
    () => requests.next(before),
    { attempt },
    ({ grant, pool }) => ({ sessionId: grant.id, pool: pool.idOrName }),
  );
  const { confirm, pool } = acquired;
  const browser = new HeldBrowser(call, { ...acquired, attempt });
  const { session, sessionId } = browser.context;
  call.hooks.leased(browser.context);
  emit({ type: 'acquired', pool: pool.idOrName, session, sessionId, attempt });
  const unfit = refused(() => verifyGrant(pool.idOrName, acquired.grant, call.how));
  try {
    if (unfit) throw unfit;
    const lease = await connect(call, browser);
    confirm({ says: 'works' });
    return { lease };
  } catch (error) {
    const lost = { session, released: await browser.abandon() };
    const outcome: Outcome | undefined = unfit
      ? { kind: 'unfit', error: unfit }
      : outcomeOf(error, browser, requests);
    confirm({ says: outcome?.isPaced ? 'full' : 'works', error: outcome?.error });
    return outcome ? { lost, outcome } : { lost, failure: { error } };
  }
}

/** What a call asks of its pools. */
function orderOf<Session extends object, Features extends FeatureSet>(
  call: Call<Session, Features>,
): AcquireOrder<Session> {
  const { hooks, pools, number, abort, context, plan } = call;
  const { settings, emit } = context;
  // Another program, or a new connection, uses the session after its first connection.
  const keepAlive = !plan.connector || settings.reconnect !== false;
  const { name, tags, sessionOptions } = settings;
  // Not a literal with several spreads, which has a hidden class of its own: thousands of calls may wait.
  const wanted = Object.assign({ name, tags, sessionOptions, keepAlive }, hooks.request());
  const refusalOf = (pool: PoolCore) => refusal(call, pool);
  return { pools, settings, abort, number, emit, wanted, refusalOf, advise: plan.advise };
}

/** Why a pool can't do what the options of a call ask. */
function refusal<Session extends object>(
  { how, context: { settings } }: Call<Session>,
  { idOrName, service }: PoolCore,
): InvalidOptionError | undefined {
  return refused(() => {
    verifyPool(idOrName, service, how);
    verifyLease(service, settings, idOrName);
  });
}

/** The refusal of a check. */
function refused(verify: () => void): InvalidOptionError | undefined {
  try {
    verify();
    return undefined;
  } catch (error) {
    if (error instanceof InvalidOptionError) return error;
    throw error;
  }
}

/** @throws InvalidOptionError if no pool can do what the options of the call ask. */
function expectUsable<Session extends object>(call: Call<Session>): void {
  const refusals = new Map(call.pools.map((pool) => [pool, refusal(call, pool)]));
  const [first] = refusals.values();
  if (!first || [...refusals.values()].includes(undefined)) return;
  if (refusals.size === 1) throw first;
  throw new InvalidOptionError(first.option, `No pool can be used. ${tellReasons(refusals)}`);
}

/** Connects to a leased browser, unless another program does. */
async function connect<Session extends object, Features extends FeatureSet>(
  call: Call<Session, Features>,
  browser: HeldBrowser<Session>,
): Promise<Lease<Session, Features>> {
  const { connector } = call.plan;
  await browser.cleanFirst();
  const link = connector && (await Link.open(browser.context, connector, call));
  browser.noteReached();
  return link ? new ConnectedLease(call, browser, link) : new Lease(call, browser);
}

/** What the failure to connect to a browser means for its pool. Returns undefined if the failure ends the call. */
function outcomeOf<Session extends object>(
  error: unknown,
  { endsWith, context: { pool } }: HeldBrowser<Session>,
  { facts }: Acquisition<Session>,
): Outcome | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const { status, unreachedBy: cause } = error;
  const isRefused = cause !== undefined || refusesUpgrade(status ?? 0);
  if (endsWith === 'request' || !isRefused) return { kind: 'unconnected', error };
  // The connection is the lease: no browser is available now, or the service can't be reached.
  const { host } = pool.client;
  if (cause === undefined) {
    host.reachability.connected();
    return { kind: 'unavailable', error, isPaced: true };
  }
  host.reachability.failed(cause);
  const failure = unreachable(host.url, cause, facts);
  return { kind: failure.isPermanent ? 'refused' : 'unavailable', error: failure, isPaced: true };
}
