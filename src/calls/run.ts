import type { FeatureResults, FeatureTimes } from '../features/options.js';
import { runBehind, type FailedLease, type LeaseSummary } from '../lease/summary.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { isRecord } from '../shared/json.js';
import { runs } from '../shared/process-state.js';
import { printable } from '../shared/redact.js';
import { isError } from '../shared/globals.js';

/** The stages of a lease, in their usual order. */
export type Stage = Exclude<keyof Timings, 'total'>;

/** Milliseconds in each stage; a stage that was not reached is missing. */
export interface Timings extends FeatureTimes {
  /** From the call to the lease: the wait in the queue of this process, and the acquire requests. */
  readonly acquire?: number;
  /** Connections to the browser, reconnects included. */
  readonly connect?: number;
  /** The callback. */
  readonly callback?: number;
  /** Cleanup of the browser. */
  readonly cleanup?: number;
  /** The release requests. */
  readonly release?: number;
  /** The time from the call to its end. */
  readonly total: number;
}

/** The parts of a result besides those of the heart. */
interface AddedResults extends FeatureResults {
  /** Milliseconds in each stage: `acquire`, `connect`, `callback`, `cleanup`, `replays`, `release`, and `total`. */
  timings: Timings;
}

/** The result of a lease after its end. */
export interface RunSummary<Session extends object = BrowserSession>
  extends Omit<LeaseSummary<Session>, 'timings'>, AddedResults {}

/** The result of `withPooledBrowser`. */
export interface Run<Value, Session extends object = BrowserSession> extends RunSummary<Session> {
  /** What the callback returned. */
  value: Value;
}

/** The run of a failed call; without a session if no browser was leased. */
export interface FailedRun<Session extends object = BrowserSession>
  extends Omit<FailedLease<Session>, 'timings'>, AddedResults {}

/**
 * Returns the run behind an error of a call, with its replays. The error itself is unchanged.
 *
 * @returns `undefined` if the value belongs to no run, if it is not an object, or if several runs threw the same object
 *   (for example the reason of a shared signal). The event `ended` has the summary of each call.
 */
export function runOf<Session extends object = BrowserSession>(
  error: unknown,
): FailedRun<Session> | undefined {
  return runBehind(error) as FailedRun<Session> | undefined;
}

/** Most errors in a chain of causes that are read. */
const MOST_CAUSES = 8;

/**
 * Prints the links of the replays if the error of a run ends the process: nobody else can print them then. The error, what Node
 * prints about the error, and the exit code are unchanged.
 */
export function reportUncaughtRuns(): void {
  if (runs.areWatched) return;
  runs.areWatched = true;
  // Not emitted if a listener of the program, or of a test runner, handles the error.
  process.on('uncaughtExceptionMonitor', (error) => {
    for (const link of linksOf(error)) process.stderr.write(`Replay of the failed run: ${printable(link)}\n`);
  });
}

/** The program may have wrapped the error. */
function linksOf(error: unknown): string[] {
  let part = error;
  for (let depth = 0; depth < MOST_CAUSES; depth++) {
    const run = runOf(part);
    if (run) return run.replays.flatMap(({ replay_view_url: link }) => link ?? []);
    if (!isError(part) && !isRecord(part)) break;
    part = part.cause;
  }
  return [];
}
