import type { BrowserSession } from '../services/kernel-api.js';
import { runs } from '../shared/process-state.js';

/**
 * What happened to the browser:
 * - `reused`: the browser is back in the pool, with its state;
 * - `destroyed`: the browser no longer exists, and the pool replaces it;
 * - `left`: the browser stays leased, as requested; or nothing can destroy it, as with `cdp`, and it is not clean;
 * - `failed`: the browser could not be released, and stays leased until its inactivity timeout;
 * - `unknown`: the service did not answer the release request, which is not repeated: the browser may already belong to
 *   another lease.
 */
export type Released = 'reused' | 'destroyed' | 'left' | 'failed' | 'unknown';

/** The end of a lease, for a `release` function. */
export interface LeaseOutcome<Session extends object = BrowserSession> {
  /** `'failed'` if the callback threw, timed out, or lost its browser. */
  status: 'ok' | 'failed';
  /** What the callback threw. */
  error?: unknown;
  /** True if the browser responds, and nothing of this lease is left in it. */
  healthy: boolean;
  /** The leased session. */
  session: Session;
}

/**
 * What to do with the browser at the end of its lease: `'reuse'` returns it to the pool with its state, `'destroy'`
 * destroys it, `'leave'` leaves it leased.
 */
export type ReleaseChoice = 'reuse' | 'destroy' | 'leave';

export function isReleaseChoice(value: unknown): value is ReleaseChoice {
  return value === 'reuse' || value === 'destroy' || value === 'leave';
}

/** Milliseconds in each stage; a stage that was not reached is missing. */
interface StageTimes {
  readonly [stage: string]: number;
  /** The time from the call to its end. */
  readonly total: number;
}

/** The result of a lease after its end, without the parts of its features. */
export interface LeaseSummary<Session extends object = BrowserSession> {
  /** The leased session. Its URLs are no longer valid. */
  session: Session;
  /** What happened to the browser; `'pending'` only with `awaitRelease: false`. */
  released: Released | 'pending';
  /** The pool that leased the browser; of a failed call, the last one that was asked. */
  pool: string;
  /** Number of acquire requests. */
  acquireAttempts: number;
  /** Number of acquire requests that may have leased an unknown browser. One that is open when the call ends counts, too. */
  unknownAcquires: number;
  /** Milliseconds in each stage: `acquire`, `connect`, `callback`, `cleanup`, `replays`, `release`, and `total`. */
  timings: StageTimes;
  /** Errors of features, cleanup and release. They never fail the run. */
  cleanupErrors: readonly Error[];
}

/** The summary of a failed call; without a session if no browser was leased. */
export interface FailedLease<Session extends object = BrowserSession> extends Omit<
  LeaseSummary<Session>,
  'session' | 'released'
> {
  /** The leased session; missing if none was leased. */
  session?: Session;
  /** What happened to the browser; missing if none was leased. */
  released?: LeaseSummary['released'];
}

/** Remembers the summary of a call by the error that it throws. */
export function rememberRun(error: unknown, summary: object): void {
  if (isObject(error)) runs.failed.set(error, runs.failed.has(error) ? AMBIGUOUS : summary);
}

/** The summary behind an error; undefined if no call, or several, threw the same object. */
export function runBehind(error: unknown): object | undefined {
  const run = isObject(error) ? runs.failed.get(error) : undefined;
  return run === AMBIGUOUS ? undefined : run;
}

const AMBIGUOUS = {};

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
