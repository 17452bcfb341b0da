import type { AcquireOutcome } from '../pool/grant.js';
import { unreachable } from '../net/reachability.js';
import type { LinkedAbort } from '../shared/abort.js';
import { backoff, delay } from '../shared/clock.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import type { Call } from './call.js';
import type { CallContext } from './context.js';
import type { LeaseStep } from './events.js';
import type { LeasePlan } from './plan.js';

/** The outcome of a request that leased no browser. */
type Failure = Exclude<AcquireOutcome<object>, { kind: 'granted' }>;

interface FailedAttempt {
  readonly kind: Failure['kind'];
  /** The error of the service, if it did not just have no browser. */
  readonly cause: Error | undefined;
  /** What the call throws if no further request follows. */
  readonly error: Error;
  /** The service has waited as requested: the next request follows at once, and counts as no retry. */
  readonly hasWaited: boolean;
  /** The circuit breaker, or the pacer of a full service, makes the pause, for all callers together. */
  readonly isPaced: boolean;
}

type AttemptedCall = Pick<Call, 'context' | 'counts' | 'pool'> & { readonly plan: Pick<LeasePlan, 'advise'> };

/** What the acquire requests of a call have shown: whether another one follows, and what the call throws. */
export class AcquireAttempts {
  readonly #call: AttemptedCall;
  readonly #context: CallContext<LeaseStep>;
  readonly #deadline: LinkedAbort;
  /** The last request that was answered, if it leased no browser. */
  #latest: FailedAttempt | undefined;
  /** The last error of the service, also if it had no browser since. */
  #lastError: Error | undefined;
  /** Failures in a row. */
  #failures = 0;
  /** Requests that failed or were answered too early. */
  #retries = 0;
  /** Broken responses whose browser was released. */
  #brokenGrants = 0;

  constructor(call: AttemptedCall, deadline: LinkedAbort) {
    this.#call = call;
    this.#context = call.context;
    this.#deadline = deadline;
  }

  /** The last request leased a browser. */
  leased(): void {
    this.#latest = undefined;
  }

  /** Adds a request that leased no browser. Returns its error. */
  add(outcome: Failure, { hasWaited = false, isPaced = false }): Error {
    const { kind } = outcome;
    const cause = 'error' in outcome ? outcome.error : undefined;
    const error = cause ?? this.#timeoutError();
    if (kind === 'unknown') this.#call.counts.unknownAcquires++;
    if (kind === 'released') this.#brokenGrants++;
    if (cause) this.#lastError = cause;
    const isNone = kind === 'none' || kind === 'unavailable';
    this.#latest = { kind, cause, error, hasWaited: isNone && hasWaited, isPaced };
    return error;
  }

  /** Whether another request may be sent after the latest one, which failed with this error. */
  mayRepeat(error: Error): boolean {
    const { name, retry } = this.#context.settings;
    if (error !== this.#latest?.error) return false;
    if (this.#deadline.signal.aborted || this.timeToReach <= 0 || this.#retries > retry.retries) return false;
    const { kind } = this.#latest;
    // A success that can't be read most likely leased a browser: another request would lease a second one.
    if (kind === 'unknown' && error instanceof PoolResponseError) return false;
    // A call repeats at most one request with an unknown outcome, and at most one with a broken response.
    if (kind === 'unknown') return this.#call.counts.unknownAcquires <= 1;
    // The name of a browser that is still being released is in use: a request for it would be refused.
    if (kind === 'released') return name === undefined && this.#brokenGrants <= 1;
    return kind !== 'refused';
  }

  /** Counts the failure. If a request follows, waits before it: as long as the service asks, otherwise by the backoff. */
  async pauseAfter(error: Error): Promise<void> {
    if (!this.#latest?.hasWaited) this.#retries++;
    if (!this.mayRepeat(error)) return;
    const { cause, hasWaited, isPaced } = this.#latest!;
    this.#failures = hasWaited ? 0 : this.#failures + 1;
    this.#context.emit({ type: 'waiting', ...this.progress, ...(cause && { error: cause }) });
    const retryAfter = retryAfterOf(cause);
    if (isPaced || (hasWaited && retryAfter === undefined)) return;
    const pause = retryAfter ?? backoff(this.#context.settings.retry, this.#failures);
    await delay(pause, this.#deadline.signal);
  }

  /** Returns the error that the call throws. */
  explain(error: unknown): unknown {
    const { signal, settings } = this.#context;
    if (signal.aborted) return signal.reason;
    const { timedOut } = this.#deadline;
    if (!timedOut && this.timeToReach <= 0) return this.#neverReachedError();
    if (timedOut) return this.#timeoutError(this.#latest);
    const { name } = settings;
    if (name === undefined || this.#call.counts.unknownAcquires === 0 || !isNameTaken(error)) return error;
    const message =
      `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
      'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
    return new LeaseNameTakenError(message, name, { ...this.facts, cause: error });
  }

  /** No connection to the service was opened within `unreachableTimeout`. */
  #neverReachedError(): PoolConnectionError {
    const { unreachableTimeout } = this.#context.settings;
    const { host } = this.#call.pool.client;
    const { message, cause } = unreachable(host.url, host.reachability.lastFailure, {});
    const more =
      `No connection was opened for ${duration(unreachableTimeout)}. ` +
      'If the service needs longer to start, increase unreachableTimeout.';
    const facts = { ...this.facts, cause, isPermanent: true };
    return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', facts);
  }

  /** No browser became available in time. If the last request failed, the message begins with its error. */
  #timeoutError(latest?: FailedAttempt): AcquireTimeoutError {
    const { settings } = this.#context;
    const { pool, attempts } = this.facts;
    const failure = latest?.cause;
    const [limit, advice] = this.#deadline.timedOut
      ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
      : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
    const sentences = [
      failure && sentence(failure.message),
      `No browser became available in pool "${pool}" ${limit} (${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`,
      // A larger pool does not help if the service can't be reached.
      !(failure instanceof PoolConnectionError) &&
        `${advice}, enlarge the pool, or look for leases that are not released.`,
      this.#call.plan.advise?.(this.#call.pool),
    ];
    return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), {
      ...this.facts,
      cause: this.#lastError,
    });
  }

  /** Milliseconds in which the service must be reached for the first time. */
  get timeToReach(): number {
    const { reachability } = this.#call.pool.client.host;
    return reachability.timeLeft(this.#context.settings.unreachableTimeout);
  }

  /** What the events say of the attempts. */
  get progress() {
    return { attempt: this.#call.counts.acquireAttempts, waited: Math.round(this.#deadline.elapsed) };
  }

  /** What the errors say of the attempts. */
  get facts() {
    const { pool, counts } = this.#call;
    return { pool: pool.idOrName, attempts: counts.acquireAttempts, elapsed: this.#deadline.elapsed };
  }
}

/**
 * The longest pause that a service can ask for, in ms. One that asks for more has made a mistake, such as the date in seconds. It would
 * get no request of this process any more: all calls wait together.
 */
const LONGEST_PAUSE = 3_600_000;

/** Milliseconds. Zero counts as missing: the requests would follow each other without a pause. */
export function retryAfterOf(error: Error | undefined): number | undefined {
  const asked = error instanceof PoolServiceError ? error.retryAfter : undefined;
  return asked ? Math.min(asked, LONGEST_PAUSE) : undefined;
}

function isNameTaken(error: unknown): boolean {
  return error instanceof PoolServiceError && (error.status === 409 || error.status === 422);
}
