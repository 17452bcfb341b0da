import { clientOf } from '../pool/client.js';
import { leaseMark } from '../pool/lease-mark.js';
import { requestGrant, type AcquireOutcome, type Granted } from '../pool/grant.js';
import { INTERNALS } from '../pool/pool-internals.js';
import { unreachable } from '../net/reachability.js';
import type { LinkedAbort } from '../shared/abort.js';
import { backoff, clock, delay, startTimer } from '../shared/clock.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { withRetries } from '../shared/retry.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import type { Lease } from './lease.js';

/** If the service decides how long a request waits, an answer within this number of ms counts as early. */
const EARLY = 1000;

/** A browser, and the function that ends its place among the leases of this process. */
export interface Acquired extends Granted {
  readonly leave: () => void;
}

/** Thrown for each request that leased no browser. */
class NotLeased extends Error {
  readonly outcome: Exclude<AcquireOutcome, { kind: 'granted' }>;
  /** The service has waited as requested: the next request follows at once, and counts as no retry. */
  readonly hasWaited: boolean;

  constructor(outcome: NotLeased['outcome'], hasWaited: boolean) {
    super(outcome.kind);
    this.outcome = outcome;
    this.hasWaited = hasWaited;
  }
}

/**
 * Sends acquire requests until the pool leases a browser, under the deadline of the call. The caller must release the
 * session. If the service leases a browser after this function has thrown, the pool releases it.
 *
 * @param keepAlive Another program, or a new connection, uses the session after its first connection.
 */
export async function acquireBrowser(
  call: Lease<unknown>,
  deadline: LinkedAbort,
  keepAlive: boolean,
): Promise<Acquired> {
  const { pool, settings } = call;
  const client = clientOf(pool);
  const { limit } = pool[INTERNALS];
  const { signal } = deadline;
  const queue = client.queueOf(pool.idOrName);
  const wait = new AcquireWait(call, deadline);
  // Also ends the wait of a caller in the queue, which sends no request.
  const timeToReach = () => client.host.reachability.timeLeft(settings.unreachableTimeout);
  let patience: NodeJS.Timeout | undefined;
  const watch = () => {
    const left = timeToReach();
    if (left > 0) patience = startTimer(left, watch);
    else if (patience) deadline.abort(new Error('The service was never reached.'));
  };
  let place: Awaited<ReturnType<typeof queue.enter>> | undefined;
  try {
    watch();
    if (queue.isFull(limit)) call.emit({ type: 'queued', ahead: queue.length });
    place = await queue.enter(limit, signal);
    const mayRetry = async (error: Error) => {
      if (!(error instanceof NotLeased) || signal.aborted || timeToReach() <= 0) return false;
      if (!wait.mayRepeat(error)) return false;
      await wait.pauseAfter(error);
      return !signal.aborted;
    };
    // With the signal, p-retry would reject even if the attempt has just leased a browser.
    const granted = await withRetries(() => wait.request(keepAlive), mayRetry);
    return { ...granted, leave: place.released };
  } catch (error) {
    place?.released();
    // Its response is still to come, and may lease a browser.
    if (wait.isOpen) call.counts.unknownAcquires++;
    throw wait.explain(error);
  } finally {
    clock.clearTimeout(patience);
    place?.acquired();
  }
}

/** The requests of one wait for a browser, and what they have shown so far. */
export class AcquireWait {
  /** A request has been sent, and its response has not been read. */
  isOpen = false;
  readonly #call: Lease<unknown>;
  readonly #deadline: LinkedAbort;
  /** Failures in a row. */
  #failures = 0;
  /** Requests that failed or were answered too early. */
  #retries = 0;
  /** Broken responses whose browser was released. */
  #brokenGrants = 0;
  /** The last error of the service, and whether the last request failed: otherwise the service had no browser. */
  #lastError: Error | undefined;
  #isFailing = false;

  constructor(call: Lease<unknown>, deadline: LinkedAbort) {
    this.#call = call;
    this.#deadline = deadline;
  }

  /** Sends one request, in turn with other callers while the service has an outage. @throws NotLeased */
  async request(keepAlive: boolean): Promise<Granted> {
    const { pool, settings, counts, emit } = this.#call;
    const client = clientOf(pool);
    const { signal } = this.#deadline;
    let sentAt = 0;
    let wait: number | undefined;
    // Clocks and rounding differ: half of the requested time counts as waited.
    const hasWaited = () => clock.now() - sentAt >= (wait === undefined ? EARLY : wait * 500);
    const send = async () => {
      const { timeLeft } = this.#deadline;
      const { name, tags, startUrl, releaseOnCrash: onCrash, replays } = settings;
      wait = client.service.waits === 'asked' ? secondsToWait(settings.pollTimeout, timeLeft) : undefined;
      sentAt = clock.now();
      emit({ type: 'acquiring', ...this.#progress(1), timeLeft: Math.floor(timeLeft) });
      counts.acquireAttempts++;
      const id = globalThis.crypto.randomUUID();
      const what = { name, tags, startUrl, wait, keepAlive, record: replays === 'record' };
      const lease = { pool: pool.idOrName, id, mark: leaseMark(), ...what };
      const onSend = () => (this.isOpen = true);
      const outcome = await requestGrant({ pool, lease, signal, emit, onCrash, onSend });
      this.isOpen = false;
      return outcome;
    };
    const outageIn = (outcome: AcquireOutcome) =>
      'error' in outcome && outcome.isOutage && !hasWaited()
        ? { retryAfter: retryAfterOf(outcome.error) }
        : undefined;
    const outcome = await client.host.gate.run({ send, outageIn, retry: settings.retry, signal });
    if (outcome.kind === 'granted') return outcome.granted;
    if (outcome.kind === 'unknown') counts.unknownAcquires++;
    if (outcome.kind === 'released') this.#brokenGrants++;
    const isNone = outcome.kind === 'none' || outcome.kind === 'unavailable';
    throw new NotLeased(outcome, isNone && hasWaited());
  }

  /** Whether another request may be sent after one that leased no browser. */
  mayRepeat({ outcome, hasWaited }: NotLeased): boolean {
    const { settings, counts } = this.#call;
    const { name, retry } = settings;
    if (!hasWaited && ++this.#retries > retry.retries) return false;
    if (outcome.kind === 'none') return true;
    // A success that can't be read most likely leased a browser: another request would lease a second one.
    if (outcome.kind === 'unknown' && outcome.error instanceof PoolResponseError) return false;
    // A call repeats at most one request with an unknown outcome, and at most one with a broken response.
    if (outcome.kind === 'unknown') return counts.unknownAcquires <= 1;
    // The name of a browser that is still being released is in use: a request for it would be refused.
    if (outcome.kind === 'released') return name === undefined && this.#brokenGrants <= 1;
    return outcome.kind === 'unavailable' && !(name !== undefined && isNameConflict(outcome.error));
  }

  /** Waits before the next request: as long as the service asks, otherwise by the backoff. */
  async pauseAfter({ outcome, hasWaited }: NotLeased): Promise<void> {
    const error = 'error' in outcome ? outcome.error : undefined;
    if (error) this.#lastError = error;
    this.#isFailing = error !== undefined;
    this.#failures = hasWaited ? 0 : this.#failures + 1;
    this.#call.emit({ type: 'waiting', ...this.#progress(), ...(error && { error }) });
    const { service } = clientOf(this.#call.pool);
    // The outage gate makes the pause, for all callers together.
    if ('error' in outcome && outcome.isOutage && !hasWaited) return;
    const retryAfter = retryAfterOf(error);
    if (hasWaited && retryAfter === undefined) return;
    // A service that refuses at once may have a browser as soon as this process releases one.
    await this.#pause(retryAfter, { untilRelease: service.waits === 'never' });
  }

  /**
   * Waits after a refused connection to a service where the connection itself is the lease, and none is available now.
   *
   * @param refusals Number of refused connections of this call.
   * @throws AcquireTimeoutError
   */
  async pauseAfterRefusal(error: Error, refusals: number): Promise<void> {
    const { emit, settings } = this.#call;
    emit({ type: 'waiting', ...this.#progress(), error });
    this.#lastError = error;
    this.#isFailing = true;
    this.#failures = refusals;
    try {
      if (refusals > settings.retry.retries) throw error;
      await this.#pause(undefined, { untilRelease: true });
    } catch {
      throw this.explain(error);
    }
  }

  /** Returns the error that the call throws. */
  explain(error: unknown): unknown {
    const { signal, settings, counts, pool } = this.#call;
    if (signal.aborted) return signal.reason;
    const { timedOut } = this.#deadline;
    const { reachability } = clientOf(pool).host;
    if (!timedOut && reachability.timeLeft(settings.unreachableTimeout) <= 0)
      return this.#neverReachedError();
    const outcome = error instanceof NotLeased ? error.outcome : undefined;
    if (timedOut || outcome?.kind === 'none') return this.#timeoutError();
    const cause = outcome ? outcome.error : error;
    const { name } = settings;
    if (name === undefined || counts.unknownAcquires === 0 || !isNameTaken(cause)) return cause;
    const message =
      `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
      'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
    return new LeaseNameTakenError(message, name, { ...this.#facts, cause });
  }

  /** No connection to the service was opened within `unreachableTimeout`. */
  #neverReachedError(): PoolConnectionError {
    const { pool, settings } = this.#call;
    const { host } = clientOf(pool);
    const { message, cause } = unreachable(host.url, host.reachability.lastFailure, {});
    const more =
      `No connection was opened for ${duration(settings.unreachableTimeout)}. ` +
      'If the service needs longer to start, increase unreachableTimeout.';
    const facts = { ...this.#facts, cause, isPermanent: true };
    return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', facts);
  }

  /** No browser became available in time. If the last request failed, the message begins with its error. */
  #timeoutError(): AcquireTimeoutError {
    const { settings, nestedIn } = this.#call;
    const { pool, attempts } = this.#facts;
    const cause = this.#lastError;
    const failure = this.#isFailing ? cause : undefined;
    const [limit, advice] = this.#deadline.timedOut
      ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
      : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
    const sentences = [
      failure && sentence(failure.message),
      `No browser became available in pool "${pool}" ${limit} (${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`,
      // A larger pool does not help if the service can't be reached.
      !(failure instanceof PoolConnectionError) &&
        `${advice}, enlarge the pool, or look for leases that are not released.`,
      nestedIn,
    ];
    return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), { ...this.#facts, cause });
  }

  async #pause(retryAfter: number | undefined, { untilRelease }: { untilRelease: boolean }): Promise<void> {
    const { pool, settings } = this.#call;
    const queue = clientOf(pool).queueOf(pool.idOrName);
    const wake = (resolve: () => void) => queue.onRelease(resolve);
    const pause = retryAfter ?? backoff(settings.retry, this.#failures);
    await delay(pause, this.#deadline.signal, untilRelease ? wake : undefined);
  }

  #progress(further = 0) {
    return {
      attempt: this.#call.counts.acquireAttempts + further,
      waited: Math.round(this.#deadline.elapsed),
    };
  }

  get #facts() {
    const { pool, counts } = this.#call;
    return { pool: pool.idOrName, attempts: counts.acquireAttempts, elapsed: this.#deadline.elapsed };
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
