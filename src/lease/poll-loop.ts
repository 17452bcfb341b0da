import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, LeaseNameTakenError, PoolServiceError } from '../shared/service-errors.js';
import { Deadline, type LinkedAbort, LONGEST_TIMER, startTimer } from '../shared/abort.js';
import { withRetries } from '../shared/lazy.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/wire.js';
import type { AcquirePlan } from './acquire-plan.js';
import { backoffDelay } from './backoff.js';
import { OutageGate } from './outage-gate.js';
import { isNameTaken, isOutage, judge, NoBrowserYet } from './retry-rules.js';
import { WaitingLine } from './waiting-line.js';

/** An answer within this many ms came at once, where it is not known how long the service was to wait. */
const AT_ONCE = 1000;
/** A request that has not failed after this many ms has reached a service that is back, and waits for a browser. */
const PROBE_PATIENCE = 12_000;

/** The requests of one call, one after the other, and what is known from those before. */
export class PollLoop {
  readonly #pool: BrowserPool;
  readonly #plan: AcquirePlan;
  readonly #limit: LinkedAbort;
  readonly #deadline: Deadline;
  readonly #gate: OutageGate;
  #session: BrowserSession | null = null;
  #lastError: Error | undefined;
  #attempts = 0;
  /** Answers in a row that came sooner than asked: only these are backed off and count as retries. */
  #failures = 0;
  #retries = 0;
  #unknownOutcomes: number;
  #brokenGrants = 0;
  /** True while this call asks for all that wait for the service to come back. */
  #isProbe = false;

  constructor(pool: BrowserPool, plan: AcquirePlan, limit: LinkedAbort) {
    this.#pool = pool;
    this.#plan = plan;
    this.#limit = limit;
    this.#unknownOutcomes = plan.unknownOutcomes ?? 0;
    this.#deadline = new Deadline(plan.acquireTimeout);
    this.#gate = OutageGate.of(pool.baseUrl);
  }

  async run(): Promise<BrowserSession> {
    const line = WaitingLine.of(this.#pool);
    let leaveLine = this.#plan.skipsLine ? () => {} : line.enter();
    try {
      leaveLine ??= await this.#waitInLine(line);
      await withRetries(() => this.#poll(), {
        // Counted in #beforeNext: p-retry stops when none is left, even where none would be used up.
        retries: Number.POSITIVE_INFINITY,
        // The pause between tries is made in #beforeNext: p-retry's own jitter is not a full one.
        minTimeout: 0,
        onFailedAttempt: ({ error }) => this.#beforeNext(error),
      });
    } catch (error) {
      throw this.#reason(error);
    } finally {
      leaveLine?.();
    }
    return this.#session!;
  }

  async #waitInLine(line: WaitingLine): Promise<() => void> {
    this.#plan.onEvent({ type: 'queued', pool: this.#pool.idOrName, ahead: line.length });
    return line.turn(this.#limit.signal);
  }

  async #poll(): Promise<void> {
    this.#limit.signal.throwIfAborted();
    const wait = this.#secondsToAsk();
    // Clocks and roundings differ: a service that waited half as long as asked has waited.
    const atOnce = new Deadline(wait === undefined ? AT_ONCE : (wait * 1000) / 2);
    this.#attempts++;
    this.#tell({ type: 'acquiring', timeLeft: Math.round(this.#deadline.remaining) });
    try {
      this.#session = await this.#ask(wait);
    } finally {
      this.#failures = atOnce.passed ? 0 : this.#failures + 1;
    }
    if (!this.#session) throw new NoBrowserYet();
  }

  /** Sends one request, and tells the other callers of this service what came of it. */
  async #ask(wait: number | undefined): Promise<BrowserSession | null> {
    const { request, onEvent } = this.#plan;
    const isBack = startTimer(PROBE_PATIENCE, () => this.#report({ failed: false }));
    try {
      const session = await this.#pool.acquire(
        { ...request, ...(wait !== undefined && { acquire_timeout_seconds: wait }) },
        { signal: this.#limit.signal, onEvent },
      );
      this.#report({ failed: false });
      return session;
    } catch (error) {
      // A call that gave up has learnt nothing of the service.
      this.#report({ failed: isOutage(error) || this.#limit.signal.aborted });
      throw error;
    } finally {
      clearTimeout(isBack);
    }
  }

  #report({ failed }: { failed: boolean }): void {
    if (this.#isProbe) this.#gate.probed({ failed });
    else if (!failed) this.#gate.answered();
    this.#isProbe = false;
  }

  /** Whole seconds, as the interface wants them, and never past the deadline. */
  #secondsToAsk(): number | undefined {
    const { pollTimeout } = this.#plan;
    if (pollTimeout === false) return undefined;
    const left = Math.floor(this.#deadline.remaining / 1000);
    return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), left));
  }

  /** Decides whether to ask again, and pauses before that. */
  async #beforeNext(error: Error): Promise<void> {
    if (this.#limit.signal.aborted) throw error;
    const verdict = judge(error, this.#plan.request.name !== undefined);
    if (verdict === 'unknown') this.#unknownOutcomes++;
    if (verdict === 'given-back') this.#brokenGrants++;
    if (verdict === 'final' || this.#unknownOutcomes > 1 || this.#brokenGrants > 1) throw error;
    if (!(error instanceof NoBrowserYet)) this.#lastError = error;
    if (this.#failures > 0 && ++this.#retries > this.#plan.retry.retries) throw error;
    const { signal } = this.#limit;
    const delay = this.#pause(error, this.#failures);
    this.#tell({
      type: 'waiting',
      delay: Math.round(Math.min(delay, this.#deadline.remaining)),
      ...(!(error instanceof NoBrowserYet) && { error }),
    });
    // Some services say 503 or 504 when they have waited in vain: that is no outage.
    const isDown = isOutage(error) && this.#failures > 0;
    if (!isDown) await sleep(delay, undefined, { signal });
    else this.#isProbe = await this.#gate.turn((failures) => this.#pause(error, failures), signal);
  }

  #pause(error: Error, failures: number): number {
    const asked = (error instanceof PoolServiceError && error.retryAfter) || 0;
    const pause = failures === 0 && asked === 0 ? 0 : asked + backoffDelay(this.#plan.retry, failures);
    // Not cut to the time left: at the deadline the signal ends the pause, and no request is sent with no time for it.
    return Math.min(pause, LONGEST_TIMER);
  }

  #reason(error: unknown): unknown {
    const { signal, acquireTimeout, retry, note } = this.#plan;
    if (signal.aborted) return signal.reason;
    const limited = error instanceof NoBrowserYet ? `${retry.retries} retries` : `${acquireTimeout} ms`;
    if (!this.#limit.timedOut && this.#unknownOutcomes > 0 && isNameTaken(error))
      return this.#nameTaken(error);
    if (!this.#limit.timedOut && !(error instanceof NoBrowserYet)) return error;
    return new AcquireTimeoutError(
      `No browser became available in pool ${this.#pool.idOrName} within ${limited} ` +
        `(${this.#attempts} requests). All are leased, or the pool is filling up: ` +
        `raise acquireTimeout, enlarge the pool, or look for leases that are not given back.${note ? ` ${note}` : ''}`,
      {
        pool: this.#pool.idOrName,
        attempts: this.#attempts,
        elapsed: this.#deadline.elapsed,
        cause: this.#lastError,
      },
    );
  }

  #nameTaken(cause: unknown): unknown {
    const { name } = this.#plan.request;
    if (name === undefined) return cause;
    const message =
      `The lease name ${name} is in use. An earlier request of this call, whose answer was lost, may have leased ` +
      'a browser under it, which then stays leased until its inactivity time-out (event outcome-unknown).';
    const facts = {
      pool: this.#pool.idOrName,
      attempts: this.#attempts,
      elapsed: this.#deadline.elapsed,
      cause,
    };
    return new LeaseNameTakenError(message, name, facts);
  }

  #tell(
    event: { type: 'acquiring'; timeLeft: number } | { type: 'waiting'; delay: number; error?: Error },
  ): void {
    const facts = {
      pool: this.#pool.idOrName,
      attempt: this.#attempts,
      waited: Math.round(this.#deadline.elapsed),
    };
    this.#plan.onEvent({ ...event, ...facts });
  }
}
