import { setTimeout as sleep } from 'node:timers/promises';
import { INTERNALS } from '../service/pool-internals.js';
import { isOutage, isOutcomeUnknown, meaningOf } from '../service/status.js';
import type { BrowserSession } from '../service/wire.js';
import { LONGEST_TIMER, startTimer, type LinkedAbort } from '../shared/abort.js';
import { withRetries } from '../shared/retry.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import { nameTakenError, neverReachedError, timeoutError } from './acquire-errors.js';
import type { LeaseCall } from './lease-call.js';
import { NestedWait } from './nesting.js';
import { acquireBody } from './acquire-options.js';

/** If the service decides how long a request waits, a response within this number of ms counts as early. */
const EARLY = 1000;

/**
 * Sends acquire requests until the pool leases a browser, under the deadline of the call. The caller must release the
 * session. If the service leases a browser after this function has thrown, the pool releases it.
 */
export async function acquireSession(call: LeaseCall, deadline: LinkedAbort): Promise<BrowserSession> {
  const nested = NestedWait.begin(call);
  try {
    const acquire = new Acquire(call, deadline, nested);
    return await call.pool[INTERNALS].counters.countCall(() => acquire.run());
  } finally {
    nested?.end();
  }
}

/** The reason of the deadline when the service was never reached. */
class NeverReached extends Error {}

/** Thrown for a response without a browser that came before the requested wait had elapsed. */
class NoBrowserYet extends Error {}

class Acquire {
  readonly #call: LeaseCall;
  readonly #deadline: LinkedAbort;
  readonly #nested: NestedWait | undefined;
  /** The last error of the service, for the final error. */
  #lastError: Error | undefined;
  /** The last request failed: the service may have browsers. */
  #isFailing = false;
  /** Number of broken responses whose browser was released. */
  #brokenGrants = 0;
  #patience: NodeJS.Timeout | undefined;

  constructor(call: LeaseCall, deadline: LinkedAbort, nested: NestedWait | undefined) {
    this.#call = call;
    this.#deadline = deadline;
    this.#nested = nested;
  }

  async run(): Promise<BrowserSession> {
    const { retry } = this.#call.settings;
    const { signal } = this.#deadline;
    let leaveQueue: (() => void) | undefined;
    let session: BrowserSession | null = null;
    const request = async () => {
      session = await this.#request();
    };
    try {
      this.#watch();
      leaveQueue = await this.#enterQueue();
      // The service has waited as requested, so the next request follows immediately.
      while (!session) {
        await withRetries(request, {
          ...retry,
          signal,
          shouldRetry: ({ error }) => this.#mayRetry(error),
          onFailedAttempt: ({ error, retriesLeft }) => this.#beforeRetry(error, retriesLeft),
        });
      }
      return session;
    } catch (error) {
      // p-retry rejects after an abort even if the attempt has just succeeded: that browser must be released.
      if (session) return session;
      throw this.#explain(error);
    } finally {
      clearTimeout(this.#patience);
      leaveQueue?.();
    }
  }

  /** Ends the wait when the service counts as unreachable, also for a caller in the queue, which sends no request. */
  #watch(): void {
    const left = this.#timeToReach;
    if (left > 0) this.#patience = startTimer(left, () => this.#watch());
    else if (this.#patience) this.#deadline.abort(new NeverReached());
  }

  /** Milliseconds until the service counts as unreachable. */
  get #timeToReach(): number {
    const { pool, settings } = this.#call;
    return pool[INTERNALS].client.service.reachability.timeLeft(settings.unreachableTimeout);
  }

  /** A nested call skips the queue: the calls before it may wait for the browser that its own caller holds. */
  async #enterQueue(): Promise<(() => void) | undefined> {
    if (this.#nested) return undefined;
    const { pool, emit } = this.#call;
    const queue = pool[INTERNALS].client.service.queueOf(pool.idOrName);
    if (queue.isFull) emit({ type: 'queued', ahead: queue.length });
    return queue.enter(this.#deadline.signal);
  }

  /** Sends one request. Resolves to `null` if the service waited as requested and leased no browser. */
  async #request(): Promise<BrowserSession | null> {
    const { pool, settings, emit } = this.#call;
    let early = Number.POSITIVE_INFINITY;
    const hasWaited = () => performance.now() >= early;
    const send = () => {
      const { timeLeft } = this.#deadline;
      const wait = this.#secondsToWait(timeLeft);
      // Clocks and rounding differ: half of the requested time counts as waited.
      early = performance.now() + (wait === undefined ? EARLY : wait * 500);
      return this.#send(wait, timeLeft);
    };
    const { signal } = this.#deadline;
    const isGateClosing = (error: unknown) => isOutage(error) && !hasWaited();
    try {
      const { gate } = pool[INTERNALS].client.service;
      const session = await gate.run({ send, isOutage: isGateClosing, backoff: settings.retry, signal });
      if (session) return session;
      this.#isFailing = false;
      if (!hasWaited()) throw new NoBrowserYet();
      emit({ type: 'waiting', ...this.#progress() });
    } catch (error) {
      if (outcomeOf(error) === 'released') this.#brokenGrants++;
      if (!hasWaited() || outcomeOf(error) !== 'unavailable' || !this.#mayRetry(error as Error)) throw error;
      await this.#beforeRetry(error as Error);
    }
    return null;
  }

  #send(wait: number | undefined, timeLeft: number): Promise<BrowserSession | null> {
    const { pool, settings, emit } = this.#call;
    const { signal } = this.#deadline;
    signal.throwIfAborted();
    emit({ type: 'acquiring', ...this.#progress(1), timeLeft: Math.floor(timeLeft) });
    this.#nested?.endDeadlock();
    return pool.acquire(acquireBody(settings, wait), { signal, onEvent: emit });
  }

  /** Whole seconds, as the API requires, and never past the deadline. */
  #secondsToWait(timeLeft: number): number | undefined {
    const { pollTimeout } = this.#call.settings;
    if (pollTimeout === false) return undefined;
    return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000)));
  }

  #mayRetry(error: Error): boolean {
    if (this.#deadline.signal.aborted || this.#timeToReach <= 0) return false;
    const outcome = outcomeOf(error);
    const { name } = this.#call.settings;
    // A call repeats at most one request with an unknown outcome, and at most one with a broken response.
    if (outcome === 'unknown') return this.#call.unknownAcquires <= 1;
    // The name of a browser that is still being released is in use: a request for it would be refused.
    if (outcome === 'released') return name === undefined && this.#brokenGrants <= 1;
    return outcome === 'unavailable' && !(name !== undefined && isNameConflict(error));
  }

  async #beforeRetry(error: Error, retriesLeft = 1): Promise<void> {
    if (retriesLeft <= 0 || !this.#mayRetry(error)) return;
    const isEmpty = error instanceof NoBrowserYet;
    if (!isEmpty) this.#lastError = error;
    this.#isFailing = !isEmpty;
    this.#call.emit({ type: 'waiting', ...this.#progress(), ...(!isEmpty && { error }) });
    // p-retry adds its backoff. At the deadline the signal ends the pause.
    const retryAfter = error instanceof PoolServiceError ? (error.retryAfter ?? 0) : 0;
    const { signal } = this.#deadline;
    if (retryAfter > 0) await sleep(Math.min(retryAfter, LONGEST_TIMER), undefined, { signal });
  }

  #explain(error: unknown): unknown {
    const { signal, settings, unknownAcquires } = this.#call;
    const { timedOut } = this.#deadline;
    if (signal.aborted) return signal.reason;
    if (!timedOut && this.#timeToReach <= 0) return neverReachedError(this.#call, this.#deadline);
    if (timedOut || error instanceof NoBrowserYet) {
      const facts = { cause: this.#lastError, isFailing: this.#isFailing, nested: this.#nested };
      return timeoutError(this.#call, this.#deadline, facts);
    }
    const { name } = settings;
    if (name === undefined || unknownAcquires === 0 || !isNameTaken(error)) return error;
    return nameTakenError(this.#call, this.#deadline, { name, cause: error });
  }

  #progress(further = 0): { attempt: number; waited: number } {
    const { acquireAttempts } = this.#call;
    return { attempt: acquireAttempts + further, waited: Math.round(this.#deadline.elapsed) };
  }
}

/**
 * The meaning of a failed acquire request: no browser was leased (`unavailable`); it is unknown whether one was
 * (`unknown`); one was leased in a broken response and is being released (`released`); or no later request can succeed
 * (`final`).
 */
function outcomeOf(error: unknown): 'unavailable' | 'unknown' | 'released' | 'final' {
  if (error instanceof NoBrowserYet) return 'unavailable';
  if (error instanceof PoolResponseError) return error.sessionId === undefined ? 'final' : 'released';
  if (isOutcomeUnknown(error)) return 'unknown';
  if (error instanceof PoolConnectionError) return error.isPermanent ? 'final' : 'unavailable';
  const isUnavailable =
    error instanceof PoolServiceError && meaningOf(error.status).acquire === 'unavailable';
  return isUnavailable ? 'unavailable' : 'final';
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
