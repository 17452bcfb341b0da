import type { ReplayStatus } from './replay-status.js';
import type { BrowserSession, Replay } from '../service/wire.js';

/**
 * What became of the browser:
 * - `reused`: back in the pool, as it is;
 * - `destroyed`: gone, and replaced by the pool;
 * - `left`: still leased, as asked for;
 * - `failed`: still leased, against all efforts, until its inactivity time-out.
 */
export type Released = 'reused' | 'destroyed' | 'left' | 'failed';

/** Milliseconds per stage; a stage that was not reached is missing. */
export interface Timings {
  acquire?: number;
  /** To a usable page; with `reconnect` all connections together. */
  connect?: number;
  callback?: number;
  /** Closing pages, while the replays are listed. */
  sweep?: number;
  release?: number;
  /** Stopping a recording, listing the replays, and waiting, after the release, until what was recorded is written. */
  replays?: number;
  /** From the call to its end. */
  total: number;
}

/** What is left of a lease once it is over. */
export interface RunTail {
  /** The leased session. Its URLs no longer work for you. */
  session: BrowserSession;
  /** The recordings made during this lease: neither those of the lease before nor of the one after. */
  replays: readonly Replay[];
  replayStatus: ReplayStatus;
  /** `'pending'` only with `awaitRelease: false`. */
  released: Released | 'pending';
  /** Acquire requests sent. */
  attempts: number;
  /** Those of them of which it can't be known whether they leased a browser (events `outcome-unknown`). */
  unknownOutcomes: number;
  timings: Timings;
  /** What went wrong while recording and tidying up. It never fails the run. */
  cleanupErrors: readonly Error[];
}

/** What `withPooledBrowser` resolves to. */
export interface Run<Value> extends RunTail {
  /** What the callback returned. */
  value: Value;
}

/** The run behind an error; without a session where none was leased. */
export interface FailedRun extends Omit<RunTail, 'session' | 'released'> {
  session?: BrowserSession;
  released?: Released | 'pending';
}

const runs = new WeakMap<object, FailedRun>();

/**
 * The run behind an error that `withPooledBrowser` or `leaseBrowser` threw: a failing test still has its replay link.
 * The error itself stays as it was thrown.
 *
 * @returns `undefined` for errors of no run, and for thrown values that are no objects.
 */
export function runOf(error: unknown): FailedRun | undefined {
  return isKey(error) ? runs.get(error) : undefined;
}

export function rememberRun(error: unknown, run: FailedRun): void {
  if (isKey(error)) runs.set(error, run);
}

function isKey(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
