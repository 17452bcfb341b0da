import type { Replay } from '../services/browser-service.js';
import type { BrowserSession } from '../services/kernel.js';
import { runs } from '../shared/process-state.js';
import type { Stage } from '../shared/telemetry.js';

/**
 * What happened to the browser:
 * - `reused`: the browser is back in the pool, with its state;
 * - `destroyed`: the browser no longer exists, and the pool replaces it;
 * - `left`: the browser stays leased, as requested; or nothing can destroy it, as with `cdp`, and it is not clean;
 * - `failed`: the browser could not be released, and stays leased until its inactivity timeout;
 * - `unknown`: the service did not answer the release request. The request is not repeated, because the browser may
 *   already belong to another lease.
 */
export type Released = 'reused' | 'destroyed' | 'left' | 'failed' | 'unknown';

/**
 * Whether the recordings of a lease are complete:
 * - `ready`: all recordings of this lease are finished;
 * - `pending`: at least one is still running or being written;
 * - `none`: nothing was recorded;
 * - `unavailable`: the service did not list the recordings in time, or did not record;
 * - `off`: not requested.
 */
export type ReplayStatus = 'ready' | 'pending' | 'none' | 'unavailable' | 'off';

export interface ReplayResult {
  replays: readonly Replay[];
  replayStatus: ReplayStatus;
  /** Why the list is missing or may be out of date. */
  error?: Error;
}

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

/** Milliseconds in each stage; a stage that was not reached is missing. `connect` includes reconnects. */
export type Timings = { readonly [stage in Stage]?: number } & {
  /** From the call to its end. */
  readonly total: number;
};

/** A file that the browser downloaded, in the folder of the option `downloads`. */
export interface Download {
  /** Absolute path of the file on this machine. */
  readonly path: string;
  /** URL from which the browser loaded the file. The content of a `data:` URL is shortened. */
  readonly url: string;
  /** The file name that the server or the page suggested. It comes from outside: use `path`. */
  readonly suggestedFilename: string;
  /** Size of the file in bytes. */
  readonly size: number;
}

/** The result of a lease after its end. */
export interface RunSummary<Session extends object = BrowserSession> {
  /** The leased session. Its URLs are no longer valid. */
  session: Session;
  /** The recordings of this lease, without those of earlier or later leases of the same browser. */
  replays: readonly Replay[];
  /** Whether the recordings are complete. */
  replayStatus: ReplayStatus;
  /** What happened to the browser; `'pending'` only with `awaitRelease: false`. */
  released: Released | 'pending';
  /** Number of acquire requests. */
  acquireAttempts: number;
  /** Number of acquire requests that may have leased an unknown browser: also one that is open when the call ends. */
  unknownAcquires: number;
  /** Milliseconds in each stage. */
  timings: Timings;
  /** Errors of recording, artifacts, downloads, cleanup and release. They never fail the run. */
  cleanupErrors: readonly Error[];
  /** Paths of the files that the option `artifacts` collected. */
  artifacts: readonly string[];
  /** The files that arrived in the folder of the option `downloads`. */
  downloads: readonly Download[];
}

/** The result of `withPooledBrowser`. */
export interface Run<Value, Session extends object = BrowserSession> extends RunSummary<Session> {
  /** What the callback returned. */
  value: Value;
}

/** The run of a failed call; without a session if no browser was leased. */
export interface FailedRun<Session extends object = BrowserSession> extends Omit<
  RunSummary<Session>,
  'session' | 'released'
> {
  /** The leased session; missing if none was leased. */
  session?: Session;
  /** What happened to the browser; missing if none was leased. */
  released?: Released | 'pending';
}

/**
 * Returns the run behind an error that `withPooledBrowser` or `leaseBrowser` threw, so that a failed test has its replay
 * links. The error itself is unchanged.
 *
 * @returns `undefined` if the value belongs to no run, if it is not an object, or if several runs threw the same object
 *   (for example the reason of a shared signal). The event `ended` has the summary of each call.
 */
export function runOf<Session extends object = BrowserSession>(
  error: unknown,
): FailedRun<Session> | undefined {
  const run = isObject(error) ? runs.failed.get(error) : undefined;
  return run === AMBIGUOUS ? undefined : (run as FailedRun<Session> | undefined);
}

export function rememberRun(error: unknown, run: FailedRun): void {
  if (isObject(error)) runs.failed.set(error, runs.failed.has(error) ? AMBIGUOUS : run);
}

const AMBIGUOUS = {};

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
