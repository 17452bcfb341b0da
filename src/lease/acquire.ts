import pRetry, { type RetryContext } from 'p-retry';
import { requestGrant, type AcquireOutcome, type Granted, type WantedLease } from '../pool/grant.js';
import type { Turn } from '../pool/pacer.js';
import type { PoolCore } from '../pool/pool-core.js';
import { unreachable } from '../net/reachability.js';
import { LinkedAbort } from '../shared/abort.js';
import { backoff, clock, delay, startTimer } from '../shared/clock.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, ConnectError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import type { Call } from './call.js';
import type { CallContext } from './context.js';
import type { LeaseStep } from './events.js';
import { requestedBy } from './options.js';
import type { Handover } from './plan.js';

/** If the service decides how long a request waits, an answer within this number of ms counts as early. */
const EARLY = 1000;

/** A browser, its pool, and the function that ends its place among the leases of this process. */
export interface Acquired<Session extends object> extends Granted<Session> {
  readonly pool: PoolCore<Session>;
  readonly leave: () => void;
}

/** A request that leased no browser. */
interface NotLeased {
  readonly outcome: Exclude<AcquireOutcome<object>, { kind: 'granted' }>;
  /** The service has waited as requested: the next request follows at once, and counts as no retry. */
  readonly hasWaited: boolean;
  /** What the call throws if no further request follows. */
  readonly error: Error;
}

/**
 * The browser of a lease that another process began.
 *
 * @throws ConnectError if another lease of this process uses the browser.
 */
export function joinLease<Session extends object>(
  pool: PoolCore<Session>,
  handover: Omit<Handover<Session>, 'features'>,
): Acquired<Session> {
  const { id: sessionId } = handover.grant;
  // Built here: the token must not be sent where a record from outside wants it.
  const ticket = pool.ticketOf(sessionId, handover.lease, handover.isMarkShown);
  const leave = pool.queue.join(sessionId, { limit: pool.limit, isAlone: !ticket });
  if (leave) return { ...handover, pool, ticket, servedAt: undefined, leave };
  const message = 'Another lease of this process uses the browser: release that lease first.';
  throw new ConnectError(message, { sessionId });
}

/** The acquire requests of one call, under its deadline. The holder must call `dispose`. */
export class Acquisition<Session extends object> {
  readonly #call: Call<Session>;
  readonly #context: CallContext<LeaseStep>;
  readonly #counts: Call['counts'];
  /** What each request asks for, without the time to wait. */
  readonly #wanted: Omit<WantedLease, 'wait'>;
  readonly #deadline: LinkedAbort;
  /** Of the present requests, which begin with the first pool. */
  #pool: PoolCore<Session>;
  /** For a service that may be full. */
  #turn: Turn;
  /** A request has been sent, and its response has not been read. */
  #isOpen = false;
  /** The last request that was answered, if it leased no browser. */
  #latest: NotLeased | undefined;
  /** The last error of the service, also if it had no browser since. */
  #lastError: Error | undefined;
  /** Failures in a row. */
  #failures = 0;
  /** Requests that failed or were answered too early. */
  #retries = 0;
  /** Broken responses whose browser was released. */
  #brokenGrants = 0;

  /** @param how `keepAlive`: the session must survive a lost connection. */
  constructor(call: Call<Session>, { keepAlive }: { keepAlive: boolean }) {
    const { signal, settings } = call.context;
    this.#call = call;
    this.#context = call.context;
    this.#counts = call.counts;
    this.#wanted = { ...requestedBy(settings), keepAlive, ...call.hooks.request() };
    this.#deadline = new LinkedAbort(signal, settings.acquireTimeout);
    this.#pool = call.pools[0];
    this.#turn = this.#pool.queue.pacer.turn();
  }

  /**
   * Sends acquire requests until a pool leases a browser. If no request to a pool can succeed, the next pool is asked. The caller
   * must release the session. If the service leases a browser after this function has thrown, the pool releases it.
   */
  async acquire(): Promise<Acquired<Session>> {
    const { pools } = this.#call;
    for (const [index, pool] of pools.entries()) {
      this.#use(pool);
      try {
        return await this.#acquire();
      } catch (error) {
        // Another pool could lease a second browser.
        const mayHaveOne = this.#latest?.outcome.kind === 'unknown';
        if (mayHaveOne || index === pools.length - 1 || this.#deadline.signal.aborted) throw error;
      }
    }
    throw new Error('There is no pool.');
  }

  /**
   * Notes a refused connection to a service where the connection itself is the lease. The next request follows in turn.
   *
   * @throws The error of the call, if it may not connect again.
   */
  refuse(error: ConnectError): void {
    const { emit, settings } = this.#context;
    const { host } = this.#pool.client;
    const { unreachedBy: cause } = error;
    if (cause === undefined) host.reachability.connected();
    else host.reachability.failed(cause);
    const reason = cause === undefined ? error : unreachable(host.url, cause, this.#facts);
    this.#note({ kind: 'unavailable', error: reason, isOutage: false }, false);
    const isPermanent = reason instanceof PoolConnectionError && reason.isPermanent;
    if (isPermanent || this.#timeToReach <= 0 || ++this.#retries > settings.retry.retries)
      throw this.#explain(reason);
    emit({ type: 'waiting', ...this.#progress(), error: reason });
    this.#turn.refused();
  }

  /** The call is connected to the browser. */
  served(): void {
    this.#turn.served();
    // Also where no request is sent: from now on, the service is waited for.
    this.#pool.client.host.reachability.connected();
  }

  dispose(): void {
    this.#turn.end();
    this.#deadline.dispose();
  }

  /** What another pool has shown does not count. */
  #use(pool: PoolCore<Session>): void {
    this.#call.pool = pool;
    if (pool === this.#pool) return;
    this.#turn.end();
    this.#pool = pool;
    this.#turn = this.#pool.queue.pacer.turn();
    this.#isOpen = false;
    this.#latest = undefined;
    this.#lastError = undefined;
    this.#failures = 0;
    this.#retries = 0;
  }

  async #acquire(): Promise<Acquired<Session>> {
    const { emit, settings } = this.#context;
    const { limit, queue } = this.#pool;
    const { signal } = this.#deadline;
    // Also ends the wait of a caller in the queue, which sends no request.
    let patience: NodeJS.Timeout | undefined;
    const watch = () => {
      const left = this.#timeToReach;
      if (left > 0) patience = startTimer(left, watch);
      else if (patience) this.#deadline.abort(new Error('The service was never reached.'));
    };
    let place: Awaited<ReturnType<typeof queue.enter>> | undefined;
    try {
      watch();
      if (queue.isFull(limit)) emit({ type: 'queued', ahead: queue.length });
      place = await queue.enter(limit, signal);
      // Without the signal: p-retry would reject even if the attempt has just leased a browser.
      const granted = await pRetry(() => this.#attempt(), {
        retries: settings.retry.retries - this.#retries,
        onFailedAttempt: this.#afterFailure,
        shouldRetry: ({ error }) => this.#mayRepeat(error),
        // `#afterFailure` makes the pause, which depends on the answer and on other callers.
        minTimeout: 0,
      });
      return { ...granted, pool: this.#pool, leave: place.leave };
    } catch (error) {
      place?.leave();
      // Its response is still to come, and may lease a browser.
      if (this.#isOpen) this.#counts.unknownAcquires++;
      throw this.#explain(error);
    } finally {
      clock.clearTimeout(patience);
      place?.leaveQueue();
    }
  }

  /**
   * Sends requests, one after another while the service waits as requested.
   *
   * @throws The error of a request that failed, or was answered too early.
   */
  async #attempt(): Promise<Granted<Session>> {
    const { signal } = this.#deadline;
    for (;;) {
      await this.#turn.begin(this.#context.settings.retry, signal);
      signal.throwIfAborted();
      const granted = await this.#request();
      if (granted) return granted;
      const { hasWaited, error } = this.#latest!;
      if (!hasWaited || !this.#mayRepeat(error)) throw error;
      await this.#pause();
    }
  }

  /** Sends one request, in turn with other callers while the service has an outage. */
  async #request(): Promise<Granted<Session> | undefined> {
    const { settings, emit } = this.#context;
    const pool = this.#pool;
    const { service, client } = pool;
    const { signal } = this.#deadline;
    const passage = await client.host.breaker.enter(settings.retry, signal);
    const { timeLeft } = this.#deadline;
    const { releaseOnCrash: onCrash, pollTimeout } = settings;
    const wait = service.waits === 'asked' ? secondsToWait(pollTimeout, timeLeft) : undefined;
    const sentAt = clock.now();
    emit({ type: 'acquiring', ...this.#progress(1), timeLeft: Math.floor(timeLeft) });
    this.#counts.acquireAttempts++;
    const wanted = { ...this.#wanted, wait };
    const onSend = () => (this.#isOpen = true);
    let outcome: AcquireOutcome<Session>;
    try {
      outcome = await requestGrant({ pool, wanted, signal, emit, onCrash, onSend });
    } catch (error) {
      passage.end();
      throw error;
    }
    this.#isOpen = false;
    // Clocks and rounding differ: half of the requested time counts as waited.
    const hasWaited = clock.now() - sentAt >= (wait === undefined ? EARLY : wait * 500);
    if ('error' in outcome && outcome.isOutage && !hasWaited) passage.fails(retryAfterOf(outcome.error));
    else passage.works();
    if (outcome.kind === 'granted') {
      this.#latest = undefined;
      // Where the connection is the lease, the service has not leased a browser yet.
      if (outcome.granted.ticket) this.#turn.served();
      return outcome.granted;
    }
    if (this.#isFull(outcome)) this.#turn.refused(retryAfterOf(outcome.error));
    if (outcome.kind === 'unknown') this.#counts.unknownAcquires++;
    if (outcome.kind === 'released') this.#brokenGrants++;
    const isNone = outcome.kind === 'none' || outcome.kind === 'unavailable';
    this.#note(outcome, isNone && hasWaited);
    return undefined;
  }

  #note(outcome: NotLeased['outcome'], hasWaited: boolean): void {
    if ('error' in outcome) this.#lastError = outcome.error;
    const error = 'error' in outcome ? outcome.error : this.#timeoutError();
    this.#latest = { outcome, hasWaited, error };
  }

  /** Counts the failure, and waits before the next request if there is one. */
  readonly #afterFailure = async ({ error, retriesLeft }: RetryContext): Promise<void> => {
    this.#retries++;
    if (retriesLeft > 0 && this.#mayRepeat(error)) await this.#pause();
  };

  /** Whether another request may be sent after the latest one, which failed with this error. */
  #mayRepeat(error: Error): boolean {
    const { name } = this.#context.settings;
    if (!this.#latest || error !== this.#latest.error) return false;
    if (this.#deadline.signal.aborted || this.#timeToReach <= 0) return false;
    const { outcome } = this.#latest;
    if (outcome.kind === 'none') return true;
    // A success that can't be read most likely leased a browser: another request would lease a second one.
    if (outcome.kind === 'unknown' && outcome.error instanceof PoolResponseError) return false;
    // A call repeats at most one request with an unknown outcome, and at most one with a broken response.
    if (outcome.kind === 'unknown') return this.#counts.unknownAcquires <= 1;
    // The name of a browser that is still being released is in use: a request for it would be refused.
    if (outcome.kind === 'released') return name === undefined && this.#brokenGrants <= 1;
    return outcome.kind === 'unavailable' && !(name !== undefined && isNameConflict(outcome.error));
  }

  /** Waits before the next request: as long as the service asks, otherwise by the backoff. */
  async #pause(): Promise<void> {
    const { outcome, hasWaited } = this.#latest!;
    const error = 'error' in outcome ? outcome.error : undefined;
    this.#failures = hasWaited ? 0 : this.#failures + 1;
    this.#context.emit({ type: 'waiting', ...this.#progress(), ...(error && { error }) });
    // The circuit breaker, or the pacer of a full service, makes the pause, for all callers together.
    if ('error' in outcome && outcome.isOutage && !hasWaited) return;
    if (this.#isFull(outcome)) return;
    const retryAfter = retryAfterOf(error);
    if (hasWaited && retryAfter === undefined) return;
    const pause = retryAfter ?? backoff(this.#context.settings.retry, this.#failures);
    await delay(pause, this.#deadline.signal);
  }

  /** A service that refuses at once has no browser. */
  #isFull(outcome: NotLeased['outcome']): outcome is Extract<NotLeased['outcome'], { error: Error }> {
    const isBusy = outcome.kind === 'unavailable' && !outcome.isOutage;
    return isBusy && this.#pool.service.waits === 'never';
  }

  /** Returns the error that the call throws. */
  #explain(error: unknown): unknown {
    const { signal, settings } = this.#context;
    if (signal.aborted) return signal.reason;
    const { timedOut } = this.#deadline;
    if (!timedOut && this.#timeToReach <= 0) return this.#neverReachedError();
    if (timedOut) return this.#timeoutError(this.#latest);
    const { name } = settings;
    if (name === undefined || this.#counts.unknownAcquires === 0 || !isNameTaken(error)) return error;
    const message =
      `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
      'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
    return new LeaseNameTakenError(message, name, { ...this.#facts, cause: error });
  }

  /** No connection to the service was opened within `unreachableTimeout`. */
  #neverReachedError(): PoolConnectionError {
    const { unreachableTimeout } = this.#context.settings;
    const { host } = this.#pool.client;
    const { message, cause } = unreachable(host.url, host.reachability.lastFailure, {});
    const more =
      `No connection was opened for ${duration(unreachableTimeout)}. ` +
      'If the service needs longer to start, increase unreachableTimeout.';
    const facts = { ...this.#facts, cause, isPermanent: true };
    return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', facts);
  }

  /** No browser became available in time. If the last request failed, the message begins with its error. */
  #timeoutError(latest?: NotLeased): AcquireTimeoutError {
    const { settings } = this.#context;
    const { pool, attempts } = this.#facts;
    const cause = this.#lastError;
    const failure = latest && 'error' in latest.outcome ? latest.error : undefined;
    const [limit, advice] = this.#deadline.timedOut
      ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
      : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
    const sentences = [
      failure && sentence(failure.message),
      `No browser became available in pool "${pool}" ${limit} (${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`,
      // A larger pool does not help if the service can't be reached.
      !(failure instanceof PoolConnectionError) &&
        `${advice}, enlarge the pool, or look for leases that are not released.`,
      ...this.#call.hooks.advise(),
    ];
    return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), { ...this.#facts, cause });
  }

  /** Milliseconds in which the service must be reached for the first time. */
  get #timeToReach(): number {
    const { reachability } = this.#pool.client.host;
    return reachability.timeLeft(this.#context.settings.unreachableTimeout);
  }

  #progress(further = 0) {
    return {
      attempt: this.#counts.acquireAttempts + further,
      waited: Math.round(this.#deadline.elapsed),
    };
  }

  get #facts() {
    const { idOrName: pool } = this.#pool;
    return { pool, attempts: this.#counts.acquireAttempts, elapsed: this.#deadline.elapsed };
  }
}

/** Whole seconds, and never past the deadline. */
function secondsToWait(pollTimeout: number | false, timeLeft: number): number | undefined {
  if (pollTimeout === false) return undefined;
  return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000)));
}

/** Milliseconds. Zero counts as missing: the requests would follow each other without a pause. */
function retryAfterOf(error: Error | undefined): number | undefined {
  return error instanceof PoolServiceError ? error.retryAfter || undefined : undefined;
}

/** Codes of a 409 that mean "no browser is available" also for a lease with a name. */
const NONE_AVAILABLE = /available|capacity|exhaust|timeout|timed_out|empty|busy/i;

/** Without a name, a 409 means that no browser is available; with a name, it usually means that the name is taken. */
function isNameConflict(error: Error): boolean {
  if (!(error instanceof PoolServiceError) || error.status !== 409) return false;
  const { code, details, inner_error } = error;
  const codes = [code, inner_error?.code, ...(details ?? []).map((detail) => detail.code)];
  return !codes.some((code) => code !== undefined && NONE_AVAILABLE.test(code) && !/name/i.test(code));
}

function isNameTaken(error: unknown): boolean {
  return error instanceof PoolServiceError && (error.status === 409 || error.status === 422);
}
