import pRetry from 'p-retry';
import type { Caller, Permission, Place, Served } from '../pool/gate.js';
import { readGrantOf, releaseUnclaimed, type WantedLease } from '../pool/grant.js';
import type { Granted, GrantReply } from '../pool/grant-reply.js';
import type { PoolCore } from '../pool/pool-core.js';
import { LinkedAbort, type Abortable } from '../shared/abort.js';
import { backoff, clock, delay, startTimer, type Backoff } from '../shared/clock.js';
import { addAdvice } from '../shared/errors.js';
import { PoolServiceError } from '../shared/service-errors.js';
import { acquireTimeout, nameTaken, neverReached, tellReasons, type Attempts } from './acquire-errors.js';
import type { LeaseStep } from './events.js';
import { isRateLimit, nextAttempt, type NextAttempt, type Outcome } from './next-attempt.js';
import { markOf, type CallSettings } from './options.js';

/** One pool, or several in the order in which they are asked. */
export type PoolCores<Session extends object> = readonly [PoolCore<Session>, ...PoolCore<Session>[]];

/** What a call asks of its pools. */
export interface AcquireOrder<Session extends object> {
  readonly pools: PoolCores<Session>;
  readonly settings: CallSettings;
  /** The abort of the call, which ends the wait. */
  readonly abort: Abortable;
  /** Its number in the order of all calls of this process. */
  readonly number: number;
  readonly emit: (step: LeaseStep & { readonly pool: string }) => void;
  /** What each request asks for, without the time to wait. */
  readonly wanted: Omit<WantedLease, 'wait' | 'mark'>;
  /** Why a pool can't do what the options of the call ask. */
  readonly refusalOf: (pool: PoolCore) => Error | undefined;
  /** Returns a sentence for the error of a call for which no browser became available. */
  readonly advise: ((pool: PoolCore) => string | undefined) | undefined;
}

/** How many acquire requests a call has sent, and how many of them may have leased an unknown browser. */
export interface AcquireCounts {
  readonly acquireAttempts: number;
  readonly unknownAcquires: number;
}

export const NO_REQUESTS: AcquireCounts = { acquireAttempts: 0, unknownAcquires: 0 };

/** A leased browser, and where it comes from. */
export interface Acquired<Session extends object> extends Granted<Session> {
  readonly pool: PoolCore<Session>;
  readonly counts: AcquireCounts;
  /** Ends its place among the leases of this process. @param isReleased The service has the browser back. */
  readonly free: (isReleased?: boolean) => void;
  /** Reports to the gate whether the connection was accepted, where that is the lease. */
  readonly confirm: Served<GrantReply>['confirm'];
}

/** Time in ms for the answer to an open request when the time of its pool is over. */
const ANSWER_GRACE = 1000;
/** If the service decides how long a request waits, an answer within this number of ms counts as early. */
const EARLY = 1000;
/**
 * The longest pause that a service can ask for, in ms. One that asks for more has made a mistake, such as the date in seconds. It would
 * get no request of this process any more: all calls wait together.
 */
const LONGEST_PAUSE = 3_600_000;

/** The acquire requests of one call, to one pool after the other, under one deadline. The holder must call `dispose`. */
export class Acquisition<Session extends object> {
  readonly #order: AcquireOrder<Session>;
  readonly #deadline: LinkedAbort;
  /** The pools that may still lease a browser to this call, and the place of the present one among them. */
  readonly #pools: PoolCore<Session>[];
  #at = 0;
  /** When it became the present one, by the clock. */
  #since = clock.now();
  /** The visit to the present pool. */
  #visit: Visit<Session> | undefined;
  readonly #left: Visit<Session>[] = [];
  /** Why the pools that were asked have leased no browser. */
  readonly #reasons = new Map<PoolCore, Error | undefined>();
  #attempts = 0;
  #retries = 0;
  #unknowns = 0;
  #brokenGrants = 0;
  /** Failures in a row, and browsers that could not be reached, of the present pool. */
  #failures = 0;
  #unconnected = 0;
  /** The last outcome of a request, and the last error of a service, also if it had no browser since. */
  #latest: Outcome | undefined;
  #lastError: Error | undefined;

  constructor(order: AcquireOrder<Session>) {
    this.#order = order;
    this.#pools = [...order.pools];
    this.#deadline = new LinkedAbort(order.abort, order.settings.acquireTimeout);
  }

  /** The pool that is asked now, or was asked last. */
  get pool(): string {
    return this.#pool.idOrName;
  }

  get counts(): AcquireCounts {
    const visits = this.#visit ? [...this.#left, this.#visit] : this.#left;
    const open = visits.filter(({ isOpen }) => isOpen).length;
    return { acquireAttempts: this.#attempts, unknownAcquires: this.#unknowns + open };
  }

  /** What the errors say of the attempts. */
  get facts(): Attempts {
    return { pool: this.pool, attempts: this.#attempts, elapsed: this.#deadline.elapsed };
  }

  /**
   * Asks the pools until one of them leases a browser. If a service leases one after this function has thrown, its pool gives it
   * to another call, or releases it.
   *
   * @param outcome What the browser before this one has shown.
   * @throws The error of the call.
   */
  async next(outcome?: Outcome): Promise<Acquired<Session>> {
    let latest = outcome;
    try {
      for (;;) {
        if (latest) await this.#follow(latest);
        const answer = await this.#ask();
        if ('grant' in answer) return answer;
        latest = answer;
      }
    } finally {
      this.#leave();
    }
  }

  dispose(): void {
    this.#deadline.dispose();
  }

  get #pool(): PoolCore<Session> {
    return this.#pools[this.#at]!;
  }

  get #others(): readonly PoolCore<Session>[] {
    return this.#pools.filter((pool) => pool !== this.#pool);
  }

  /** Asks the present pool until there is another answer than that it had no browser in the requested time. */
  #ask(): Acquired<Session> | Outcome | Promise<Acquired<Session> | Outcome> {
    const { idOrName, gate } = this.#pool;
    const error = this.#order.refusalOf(this.#pool);
    if (error) return { kind: 'unfit', error };
    // Such a pool is left to the calls that wait for the end of the outage.
    const { closedBy } = gate;
    const isLeft = closedBy && !isRateLimit(closedBy) && this.#others.some((other) => !other.gate.closedBy);
    if (isLeft) return { kind: 'closed', error: closedBy };
    if (!this.#visit && this.#timeHere <= 0) return { kind: 'late' };
    if (!this.#visit && gate.isBusy(this.#pool.limit))
      this.#order.emit({ type: 'queued', pool: idOrName, ahead: gate.length });
    const visit = (this.#visit ??= this.#enter());
    return this.#request(visit)
      .then((answer) =>
        'kind' in answer && answer.kind === 'none' ? this.#pollAgain(visit, answer) : answer,
      )
      .catch((cause: unknown) => this.#endOf(visit, cause));
  }

  /** Milliseconds until the next pool is asked. */
  get #timeHere(): number {
    const { failoverAfter } = this.#order.settings;
    const hasOther = this.#others.length > 0;
    return hasOther ? failoverAfter - (clock.now() - this.#since) : Number.POSITIVE_INFINITY;
  }

  /** Joins the line of the present pool. */
  #enter(): Visit<Session> {
    const { settings, number, wanted } = this.#order;
    return new Visit(this.#pool, {
      number,
      kind: JSON.stringify(wanted),
      retry: settings.retry,
      deadline: this.#deadline,
      time: this.#timeHere,
      unreachableTimeout: settings.unreachableTimeout,
      pollTimeout: settings.pollTimeout,
      requests: this,
    });
  }

  #leave(): void {
    if (!this.#visit) return;
    this.#left.push(this.#visit);
    this.#visit.leave();
    this.#visit = undefined;
  }

  /**
   * p-retry repeats a request that timed out: at once if the service has waited as requested; otherwise that is a retry, after a
   * pause. The pause is not p-retry's, whose timer a test of the caller may have faked.
   *
   * @param first The answer to the first request. p-retry is not entered before it, because thousands of calls may wait for it.
   */
  #pollAgain(visit: Visit<Session>, first: Outcome): Promise<Acquired<Session> | Outcome> {
    const { retry } = this.#order.settings;
    const poll = async (attempt: number) => {
      const answer = attempt === 1 ? first : await this.#request(visit);
      if (!('kind' in answer) || answer.kind !== 'none') return answer;
      if (answer.hasWaited !== true && this.#retries >= retry.retries) return answer;
      throw new NoBrowser(answer.hasWaited === true);
    };
    return pRetry(poll, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 0,
      shouldRetry: ({ error }) => error instanceof NoBrowser,
      onFailedAttempt: async ({ error }) => {
        if (!(error instanceof NoBrowser)) return;
        this.#emitWaiting();
        this.#failures = error.hasWaited ? 0 : this.#failures + 1;
        if (error.hasWaited) return;
        this.#retries++;
        await delay(backoff(retry, this.#failures), visit.abort.signal);
      },
    });
  }

  /** Waits at the gate for the answer to one request. */
  async #request(visit: Visit<Session>): Promise<Acquired<Session> | Outcome> {
    const { pool, place, abort } = visit;
    visit.endIfOver();
    const { reply, free, confirm } = await pool.gate.ask(place, abort);
    const { says, retryAfter, hasWaited } = reply;
    if (reply.outcome.kind === 'granted') {
      const granted = reply.outcome.granted as Granted<Session>;
      this.#latest = undefined;
      return { ...granted, pool, counts: this.counts, free, confirm };
    }
    const { kind } = reply.outcome;
    const error = 'error' in reply.outcome ? reply.outcome.error : undefined;
    if (kind === 'unknown') this.#unknowns++;
    if (kind === 'released') this.#brokenGrants++;
    return this.#note({
      kind,
      error,
      isOutage: says === 'outage',
      hasWaited: hasWaited && (kind === 'none' || kind === 'unavailable'),
      isPaced: says !== 'works' || retryAfter !== undefined,
      retryAfter,
    });
  }

  /** Keeps an outcome for the error of the call. */
  #note(outcome: Outcome): Outcome {
    this.#latest = outcome;
    this.#lastError = outcome.error ?? this.#lastError;
    return outcome;
  }

  async send(visit: Visit<Session>, { signal, wait: longest, onWrite }: Permission): Promise<GrantReply> {
    const { settings, emit, wanted } = this.#order;
    const { pool } = visit;
    const { waits } = pool.service;
    signal.throwIfAborted();
    this.#attempts++;
    const timeLeft = Math.floor(this.#deadline.timeLeft);
    const wait = longest === Number.POSITIVE_INFINITY ? undefined : longest / 1000;
    const sentAt = clock.now();
    emit({ type: 'acquiring', pool: pool.idOrName, ...this.#progress, timeLeft });
    // A listener may have aborted the call.
    signal.throwIfAborted();
    const how = { ...this.#requestAt(pool), signal, onWrite };
    const mark = markOf(settings, wanted.endsAfter);
    const outcome = await readGrantOf({ ...how, wanted: { ...wanted, mark, wait } });
    // Clocks and rounding differ: half of the requested time counts as waited.
    const hasWaited = clock.now() - sentAt >= (wait === undefined ? EARLY : wait * 500);
    if (outcome.kind === 'granted') {
      // Where the connection is the lease, the service has not leased a browser yet.
      return { outcome, hasWaited, isGranted: true, says: outcome.granted.ticket ? 'works' : 'nothing' };
    }
    const { error, isOutage } = 'error' in outcome ? outcome : { error: undefined, isOutage: false };
    // A service that refuses at once has no browser.
    const isFull = outcome.kind === 'unavailable' && !isOutage && waits === 'never';
    const refused = isFull ? 'full' : 'works';
    const says = isOutage && !hasWaited ? 'outage' : refused;
    return { outcome, hasWaited, isGranted: false, says, retryAfter: retryAfterOf(error), error };
  }

  /** Releases the browser of an answer that no caller wants. */
  release({ pool }: Visit<Session>, { outcome }: GrantReply): void {
    if (outcome.kind === 'granted') releaseUnclaimed(outcome.granted, this.#requestAt(pool));
  }

  #requestAt(pool: PoolCore<Session>) {
    const { settings, emit } = this.#order;
    return { pool, emit, onCrash: settings.releaseOnCrash, signal: undefined };
  }

  /** Does what follows an outcome. Throws if that is the end of the call. */
  async #follow(given: Outcome): Promise<void> {
    const { retry } = this.#order.settings;
    const isUnreached = given.kind === 'unavailable' && !this.#isReachable;
    const outcome = this.#note(isUnreached ? this.#unreached() : given);
    this.#failures = outcome.hasWaited ? 0 : this.#failures + 1;
    if (outcome.kind === 'unconnected') this.#unconnected++;
    this.#reasons.set(this.#pool, outcome.error ?? this.#reasons.get(this.#pool));
    const pause = backoff(retry, this.#failures);
    const next = this.#decide(outcome, pause);
    if ('fail' in next) throw this.#errorOf(outcome);
    if (next.isRetry) this.#retries++;
    if ('nextPool' in next) return this.#moveOn(next.nextPool, outcome.error);
    if (outcome.kind !== 'unconnected') this.#emitWaiting(outcome.error);
    const { signal } = this.#visit?.abort ?? this.#deadline;
    // An abort ends the next request.
    if (next.again > 0) await delay(next.again, signal).catch(() => {});
  }

  #decide(outcome: Outcome, pause: number): NextAttempt {
    const { retry, failoverAfter, name, connectAttempts } = this.#order.settings;
    return nextAttempt(outcome, {
      hasOther: this.#others.length > 0,
      isNextRound: this.#reasons.has(this.#pools[(this.#at + 1) % this.#pools.length]!),
      isOtherSlow: this.#others.some((other) => this.#reasons.has(other) && !this.#reasons.get(other)),
      failoverAfter,
      retriesLeft: retry.retries - this.#retries,
      connectsLeft: connectAttempts - this.#unconnected,
      unknowns: this.#unknowns,
      brokenGrants: this.#brokenGrants,
      hasName: name !== undefined,
      backoff: pause,
    });
  }

  #moveOn(how: 'and return' | 'for good', error: Error | undefined): void {
    this.#leave();
    const from = this.pool;
    if (how === 'for good') this.#pools.splice(this.#at, 1);
    else this.#at++;
    this.#at %= this.#pools.length;
    this.#since = clock.now();
    this.#failures = 0;
    this.#unconnected = 0;
    this.#order.emit({ type: 'failover', pool: from, from, to: this.pool, ...(error && { error }) });
  }

  /** What the end of the time at a pool means. Throws if it is the end of the call. */
  #endOf(visit: Visit<Session>, error: unknown): Outcome {
    this.#order.abort.throwIfAborted();
    if (this.#deadline.timedOut) throw this.#timeoutError(this.#latest);
    if (!visit.abort.isAborted) throw error;
    return this.#isReachable ? { kind: 'late' } : this.#unreached();
  }

  /** A connection to the service was opened, by any call, or there is still time for the first one. */
  get #isReachable(): boolean {
    const { unreachableTimeout } = this.#order.settings;
    return this.#pool.client.host.reachability.timeLeft(unreachableTimeout) > 0;
  }

  #unreached(): Outcome {
    const { unreachableTimeout } = this.#order.settings;
    return { kind: 'unreached', error: neverReached(this.#pool, unreachableTimeout, this.facts) };
  }

  /** The error of a call that ends with an outcome. */
  #errorOf({ error }: Outcome): Error {
    if (!error) return this.#timeoutError();
    const { name } = this.#order.settings;
    const mayBeOurs = name !== undefined && this.counts.unknownAcquires > 0;
    const taken = mayBeOurs ? nameTaken(error, name, this.facts) : undefined;
    if (taken || this.#reasons.size <= 1) return taken ?? error;
    const others = new Map([...this.#reasons].filter(([pool]) => pool !== this.#pool));
    const [text, reasons] = [error.message, tellReasons(others)].map((one) => one.replace(/\.$/, ''));
    addAdvice(error, text!, reasons!);
    return error;
  }

  #timeoutError(latest?: Outcome): Error {
    const { advise, settings } = this.#order;
    const { timedOut } = this.#deadline;
    const what = { failure: latest?.error, timedOut, settings, reasons: this.#reasons };
    const isSilent = this.#pool.service.waits === 'never' && this.#visit?.isOpen === true;
    return acquireTimeout(
      { ...what, isSilent, cause: this.#lastError, advice: advise?.(this.#pool) },
      this.facts,
    );
  }

  #emitWaiting(error?: Error): void {
    this.#order.emit({ type: 'waiting', pool: this.pool, ...this.#progress, ...(error && { error }) });
  }

  /** What the events say of the attempts. */
  get #progress() {
    return { attempt: this.#attempts, waited: Math.round(this.#deadline.elapsed) };
  }
}

interface VisitPlan<Session extends object> extends Pick<Caller<GrantReply>, 'number' | 'kind' | 'retry'> {
  readonly requests: Pick<Acquisition<Session>, 'send' | 'release'>;
  /** The deadline of the call. */
  readonly deadline: LinkedAbort;
  /** Milliseconds until the next pool is asked. `Infinity`: there is no other. */
  readonly time: number;
  readonly unreachableTimeout: number;
  readonly pollTimeout: number | false;
}

/** The time that a call spends in the line of one pool, as its gate sees it. Its creator calls `leave`. */
class Visit<Session extends object> implements Caller<GrantReply> {
  readonly pool: PoolCore<Session>;
  readonly place: Place<GrantReply>;
  /** Aborts when the time is over. The deadline of the call itself, if there is no other pool: thousands of calls may wait. */
  readonly abort: LinkedAbort;
  readonly #plan: VisitPlan<Session>;
  readonly #began = clock.now();
  #timer: NodeJS.Timeout | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(pool: PoolCore<Session>, plan: VisitPlan<Session>) {
    const { deadline, time } = plan;
    this.pool = pool;
    this.#plan = plan;
    this.abort = time === Number.POSITIVE_INFINITY ? deadline : new LinkedAbort(deadline);
    this.place = pool.gate.enter(this);
    this.#timer = startTimer(time, () => {
      // The answer to an open request is worth some time: it may bring a browser.
      if (this.isOpen) this.#timer = startTimer(ANSWER_GRACE, () => this.#end());
      else this.#end();
    });
    this.#watch();
  }

  get number(): number {
    return this.#plan.number;
  }

  get kind(): string {
    return this.#plan.kind;
  }

  get source(): object {
    return this.pool;
  }

  get limit(): number {
    return this.pool.limit;
  }

  get retry(): Backoff {
    return this.#plan.retry;
  }

  get wait(): number {
    if (this.pool.service.waits !== 'asked') return Number.POSITIVE_INFINITY;
    return timeToWait(this.#plan.pollTimeout, this.timeLeft);
  }

  send(permission: Permission): Promise<GrantReply> {
    return this.#plan.requests.send(this, permission);
  }

  track(work: Promise<void>): void {
    this.pool.client.background.track(work);
  }

  release(reply: GrantReply): void {
    this.#plan.requests.release(this, reply);
  }

  /** A request of this visit may still lease a browser. */
  get isOpen(): boolean {
    return this.pool.gate.isOpen(this.place);
  }

  /** Milliseconds. */
  get timeLeft(): number {
    const { deadline, time } = this.#plan;
    return Math.min(deadline.timeLeft, Math.max(0, time - this.#elapsed));
  }

  /** Ends the wait, also that of a caller in the queue, which sends no request. */
  #watch(): void {
    const left = this.#timeToReach;
    if (left === Number.POSITIVE_INFINITY) return;
    if (left > 0) this.#patience = startTimer(left, () => this.#watch());
    else if (this.#patience) this.#end();
  }

  /** Ends the time that was only prolonged for the answer to an open request. */
  endIfOver(): void {
    if (this.#elapsed >= this.#plan.time) this.#end();
  }

  leave(): void {
    clock.clearTimeout(this.#timer);
    clock.clearTimeout(this.#patience);
    if (this.abort !== this.#plan.deadline) this.abort.dispose();
    this.pool.gate.leave(this.place);
  }

  get #elapsed(): number {
    return clock.now() - this.#began;
  }

  /** Milliseconds in which the service must be reached for the first time, by any call. */
  get #timeToReach(): number {
    return this.pool.client.host.reachability.timeLeft(this.#plan.unreachableTimeout);
  }

  #end(): void {
    this.abort.abort(new Error('The time at this pool is over.'));
  }
}

/** No browser became available in the requested time. p-retry needs an error. */
class NoBrowser extends Error {
  /** The service let the request wait as requested. */
  readonly hasWaited: boolean;

  constructor(hasWaited: boolean) {
    super();
    this.hasWaited = hasWaited;
  }
}

/** Milliseconds. Zero counts as missing: the requests would follow each other without a pause. */
function retryAfterOf(error: Error | undefined): number | undefined {
  const asked = error instanceof PoolServiceError ? error.retryAfter : undefined;
  return asked ? Math.min(asked, LONGEST_PAUSE) : undefined;
}

/** Milliseconds up to the deadline: whole seconds, and at least one. `Infinity`: the service decides. */
function timeToWait(pollTimeout: number | false, timeLeft: number): number {
  if (pollTimeout === false) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000))) * 1000;
}
