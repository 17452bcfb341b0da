import pRetry from 'p-retry';
import { verifyGrant, verifyPool } from './verify-connection.js';
import { unreachable } from '../net/reachability.js';
import { refusesUpgrade } from '../net/status.js';
import { requestGrant, type Granted, type WantedLease } from '../pool/grant.js';
import type { Turn } from '../pool/pacer.js';
import { verifyLease } from '../services/check-service.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import { ConnectError } from '../shared/lease-errors.js';
import { PoolConnectionError } from '../shared/service-errors.js';
import { AcquireAttempts, retryAfterOf } from './acquire-attempts.js';
import { Call } from './call.js';
import type { CallContext } from './context.js';
import type { LeaseStep } from './events.js';
import type { FeatureSet } from './feature.js';
import { HeldBrowser } from './held-browser.js';
import { ConnectedLease, Lease } from './lease.js';
import { Link, prepareConnect } from './link.js';
import { requestedBy } from './options.js';
import type { ConnectedPlan, LeasePlan } from './plan.js';

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
  const { pool, hooks, how } = call;
  const { signal, abort, time, emit }: CallContext<LeaseStep<Session>> = call.context;
  let acquisition: Acquisition<Session> | undefined;
  let lease: Lease<Session, Features> | undefined;
  try {
    signal.throwIfAborted();
    verifyPool(pool.idOrName, pool.service, how);
    verifyLease(pool.service, call.context.settings, pool.idOrName);
    await hooks.prepare();
    acquisition = new Acquisition(call);
    if (plan.connector) prepareConnect(pool, plan.connector, plan.loadDrivers).catch(abort);
    // One browser after another, until one can be reached.
    for (let attempt = 1; !lease; attempt++) {
      call.browser = { attempt };
      const browser = await time('acquire', () => acquisition!.acquire());
      const { session, sessionId } = browser.context;
      emit({ type: 'acquired', session, sessionId, attempt });
      lease = await connect(call, browser).catch((error) => acquisition!.giveUp(browser, error));
    }
    acquisition.served();
  } catch (error) {
    call.finish(call.lastBrowser, { error });
    throw error;
  } finally {
    acquisition?.dispose();
  }
  call.endWithPool(lease);
  try {
    if (plan.isForTasks !== true) await raceAbort(hooks.begin(lease.work), signal);
    return lease;
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
}

/** Connects to a leased browser, unless another program does. */
async function connect<Session extends object, Features extends FeatureSet>(
  call: Call<Session, Features>,
  browser: HeldBrowser<Session>,
): Promise<Lease<Session, Features>> {
  const { connector } = call.plan;
  verifyGrant(call.pool.idOrName, browser.context.grant, call.how);
  await browser.cleanFirst();
  const link = connector && (await Link.open(browser.context, connector, call));
  browser.wasReached = true;
  return link ? new ConnectedLease(call, browser, link) : new Lease(call, browser);
}

/** No browser is available now, or the service can't be reached. */
function isRefusal({ status, unreachedBy }: ConnectError): boolean {
  return unreachedBy !== undefined || refusesUpgrade(status ?? 0);
}

/** If the service decides how long a request waits, an answer within this number of ms counts as early. */
const EARLY = 1000;

/** The acquire requests of one call, under its deadline. The holder must call `dispose`. */
class Acquisition<Session extends object> {
  readonly #call: Call<Session>;
  readonly #context: CallContext<LeaseStep>;
  /** What each request asks for, without the time to wait. */
  readonly #wanted: Omit<WantedLease, 'wait'>;
  readonly #deadline: LinkedAbort;
  readonly #attempts: AcquireAttempts;
  /** The turn of this call at a service that may be full. */
  readonly #turn: Turn;
  /** A request has been sent, and its response has not been read. */
  #isOpen = false;
  /** Leased browsers that could not be reached. */
  #unreached = 0;

  constructor(call: Call<Session>) {
    const { connector } = call.plan;
    const { signal, settings } = call.context;
    // Another program, or a new connection, uses the session after its first connection.
    const keepAlive = !connector || settings.reconnect !== false;
    this.#call = call;
    this.#context = call.context;
    this.#wanted = { ...requestedBy(settings), keepAlive, ...call.hooks.request() };
    this.#deadline = new LinkedAbort(signal, settings.acquireTimeout);
    this.#attempts = new AcquireAttempts(call, this.#deadline);
    this.#turn = call.pool.queue.pacer.turn();
  }

  /**
   * Sends acquire requests until the pool leases a browser. If the service leases a browser after this function has thrown, the
   * pool releases it.
   */
  async acquire(): Promise<HeldBrowser<Session>> {
    const { pool } = this.#call;
    const { limit, queue } = pool;
    const { signal } = this.#deadline;
    const attempts = this.#attempts;
    // It also ends the wait of a caller in the queue, which sends no request.
    let patience: NodeJS.Timeout | undefined;
    const watch = () => {
      const left = attempts.timeToReach;
      if (left > 0) patience = startTimer(left, watch);
      else if (patience) this.#deadline.abort(new Error('The service was never reached.'));
    };
    let place: Awaited<ReturnType<typeof queue.enter>> | undefined;
    try {
      watch();
      if (queue.isFull(limit)) this.#context.emit({ type: 'queued', ahead: queue.length });
      place = await queue.enter(limit, signal);
      // p-retry does not get the signal: it would reject even if the request has just leased a browser.
      const granted = await pRetry(() => this.#request(), {
        // `attempts` counts: an answer after the requested wait is no retry.
        retries: Number.POSITIVE_INFINITY,
        shouldRetry: ({ error }) => attempts.mayRepeat(error),
        // Makes the pause, which depends on the answer and on other callers.
        onFailedAttempt: ({ error }) => attempts.pauseAfter(error),
        minTimeout: 0,
      });
      return HeldBrowser.hold(this.#call, { ...granted, pool, freePlace: place.freePlace });
    } catch (error) {
      place?.freePlace();
      // The response of the request is still to come, and may lease a browser.
      if (this.#isOpen) this.#call.counts.unknownAcquires++;
      throw attempts.explain(error);
    } finally {
      clock.clearTimeout(patience);
      place?.leaveQueue();
    }
  }

  /**
   * Releases a browser that can't be reached.
   *
   * @throws The error of the call, if no other browser may be leased.
   */
  async giveUp(browser: HeldBrowser<Session>, error: unknown): Promise<undefined> {
    const { session } = browser.context;
    this.#call.lastBrowser = { session, released: await browser.giveUp() };
    if (!(error instanceof ConnectError)) throw error;
    // Where the connection is the lease, none was leased.
    if (browser.endsWith !== 'request' && isRefusal(error)) await this.#refuse(error);
    else if (++this.#unreached >= this.#context.settings.connectAttempts) throw error;
  }

  /** Notes a refused connection to a service where the connection itself is the lease. The next request follows in turn. */
  async #refuse(refusal: ConnectError): Promise<void> {
    const { host } = this.#call.pool.client;
    const { unreachedBy: cause } = refusal;
    if (cause === undefined) host.reachability.connected();
    else host.reachability.failed(cause);
    const error = cause === undefined ? refusal : unreachable(host.url, cause, this.#attempts.facts);
    const isPermanent = error instanceof PoolConnectionError && error.isPermanent;
    const kind = isPermanent ? 'refused' : 'unavailable';
    this.#attempts.add({ kind, error, isOutage: false }, { isPaced: true });
    await this.#attempts.pauseAfter(error);
    if (!this.#attempts.mayRepeat(error)) throw this.#attempts.explain(error);
    this.#turn.refused();
  }

  /** The call is connected to the browser. */
  served(): void {
    this.#turn.served();
    // From now on the service is waited for, also where no request is sent.
    this.#call.pool.client.host.reachability.connected();
  }

  dispose(): void {
    this.#turn.end();
    this.#deadline.dispose();
  }

  /**
   * Sends one request, in turn with other callers of a service that is full or has an outage.
   *
   * @throws The error of a request that leased no browser.
   */
  async #request(): Promise<Granted<Session>> {
    const { settings, emit } = this.#context;
    const { retry, pollTimeout, releaseOnCrash: onCrash } = settings;
    const { pool } = this.#call;
    const { service, client } = pool;
    const { signal } = this.#deadline;
    await this.#turn.begin(retry, signal);
    signal.throwIfAborted();
    const permit = await client.host.breaker.enter(retry, signal);
    this.#call.counts.acquireAttempts++;
    const { progress } = this.#attempts;
    const { timeLeft } = this.#deadline;
    const wait = service.waits === 'asked' ? secondsToWait(pollTimeout, timeLeft) : undefined;
    const sentAt = clock.now();
    emit({ type: 'acquiring', ...progress, timeLeft: Math.floor(timeLeft) });
    const wanted = { ...this.#wanted, wait };
    const onWrite = () => (this.#isOpen = true);
    const outcome = await requestGrant({ pool, wanted, signal, emit, onCrash, onWrite }).catch(
      (error: unknown) => {
        permit.release();
        throw error;
      },
    );
    this.#isOpen = false;
    // Clocks and rounding differ: half of the requested time counts as waited.
    const hasWaited = clock.now() - sentAt >= (wait === undefined ? EARLY : wait * 500);
    const isOutage = 'error' in outcome && outcome.isOutage && !hasWaited;
    const retryAfter = 'error' in outcome ? retryAfterOf(outcome.error) : undefined;
    if (isOutage) permit.failed(retryAfter);
    else permit.succeeded();
    if (outcome.kind === 'granted') {
      this.#attempts.leased();
      // Where the connection is the lease, the service has not leased a browser yet.
      if (outcome.granted.ticket) this.#turn.served();
      return outcome.granted;
    }
    // A service that refuses at once has no browser.
    const isFull = outcome.kind === 'unavailable' && !outcome.isOutage && service.waits === 'never';
    if (isFull) this.#turn.refused(retryAfter);
    throw this.#attempts.add(outcome, { hasWaited, isPaced: isOutage || isFull });
  }
}

/** Whole seconds up to the deadline, and at least one. Undefined: the service decides, also if there is no limit at all. */
function secondsToWait(pollTimeout: number | false, timeLeft: number): number | undefined {
  if (pollTimeout === false || Math.min(pollTimeout, timeLeft) === Number.POSITIVE_INFINITY) return undefined;
  return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000)));
}
