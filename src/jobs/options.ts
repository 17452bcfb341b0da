import { leaseChecks, readLeaseOptions, type AllSettings, type LeaseOptions } from '../calls/options.js';
import type { CheckingConnector, Isolation } from '../drivers/connector.js';
import { artifactsChecks, type ArtifactsOptions } from '../features/artifacts/options.js';
import type { LibraryTypes } from '../lease/options.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { leaseName } from '../pool/pool-options.js';
import { LONGEST_TIMER } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import {
  anyOf,
  callback,
  check,
  checksOf,
  countOrInfinity,
  flag,
  group,
  milliseconds,
  notNegative,
  oneOf,
  optional,
  orShort,
  readOption,
  text,
  wholeNumber,
  type Checked,
} from '../shared/options.js';
import type { AttemptFacts } from './outcome.js';
import type { MapProgress } from './progress.js';

/** The file that stores the outcomes of a job, and which stored outcomes count as done. */
export interface CheckpointOptions {
  /** Path of the file. A missing file is created. */
  path: string;
  /**
   * Runs inputs again that failed in an earlier job. Inputs that succeeded are never run again.
   * @default true
   */
  retryRejected?: boolean | undefined;
}

/** The options of the browsers that run tasks, whatever the source of the inputs. */
export interface JobOptions {
  /**
   * Files that show what happened in the browser during a task, collected before its page is closed. Their paths are in
   * `artifacts` of the outcome. Needs a connector with `observe`. Default: none.
   */
  artifacts?: ArtifactsOptions | undefined;
  /**
   * Maximum number of browsers to lease at once. No more browsers are leased than inputs wait. While the service releases
   * a browser, the request for the next one is already under way.
   * @default 4
   */
  concurrency?: number | undefined;
  /**
   * Number of tasks that run at once in one browser. With short tasks and a browser that is far away, more pages run while
   * others open.
   * @default 1
   */
  pagesPerLease?: number | undefined;
  /**
   * How tasks in one browser are isolated: `'context'`, `'storage'` or `'none'`.
   * @default 'context'
   */
  isolation?: Isolation | undefined;
  /**
   * Returns whether a failed task is retried. Called after each failed attempt that `retries` would retry. An error that
   * the function throws ends the job. Default: each failure is retried, except `TaskResultError`.
   */
  shouldRetry?: ((error: unknown, attempt: AttemptFacts) => boolean | PromiseLike<boolean>) | undefined;
  /**
   * Timeout of each attempt, in ms. When it passes, the task's signal aborts and its page is closed.
   * @default Infinity
   */
  taskTimeout?: number | undefined;
  /**
   * Number of tasks after which a browser is released and another one leased.
   * @default Infinity
   */
  tasksPerLease?: number | undefined;
  /**
   * Age in ms at which a browser accepts no more tasks. When its running tasks have ended, the browser is released and
   * another one leased.
   * @default Infinity
   */
  maxLeaseAge?: number | undefined;
  /**
   * Time in ms after which a browser without a task is released. It is leased again when the next input comes.
   * @default Infinity
   */
  idleTimeout?: number | undefined;
  /**
   * Number of tasks that run at once for one host. Tasks for other hosts go on; up to 1,000 inputs whose hosts are busy are held
   * back (100 of a queue). With a queue, the limit holds for each worker.
   * @default Infinity
   */
  hostConcurrency?: number | undefined;
  /**
   * Time between the starts of two tasks for one host, in ms. With a queue, it holds for each worker. A task that throws an error
   * with a `retryAfter` (a number of ms) delays its host, also for other inputs and without this option. With `Infinity`, or more
   * than 2,147,483,647 ms, which no timer can wait, the task is not retried, and its host not delayed.
   * @default 0
   */
  hostDelay?: number | undefined;
  /** Receives the progress of the job, at least every second. Default: none. */
  onProgress?: ((progress: MapProgress) => void) | undefined;
}

/** The options that may depend on the input of a task. */
export interface InputOptions<ContextOptions extends object = object, Input = unknown> {
  /**
   * The automation library's own options of the tasks' contexts: storage state, locale, viewport, proxy and others; or a
   * function that returns those of an input. Tasks with different options never share a context, whatever the isolation. An
   * error that the function throws is the failure of its task.
   */
  contextOptions?: ContextOptions | ((input: Input, index: number) => ContextOptions | undefined) | undefined;
  /**
   * Names the host of an input, for `hostConcurrency` and `hostDelay`. `undefined`: the input has no limits. An error that the
   * function throws ends the job. Default: of the URL. That is host and port of an input that is a URL, or has a `url`.
   */
  hostOf?: ((input: Input) => string | undefined) | undefined;
}

/** The options of `mapPooledBrowsers` that concern tasks. */
export interface TaskOptions extends JobOptions {
  /**
   * How often a failed task is retried. Each retry comes after a back-off. If its browser was lost, the task runs in another browser. A
   * browser that fails before the task has begun does not use up a retry.
   * @default 0
   */
  retries?: number | undefined;
  /**
   * Number of failed inputs at which the job stops. No more tasks start, and the running tasks end. The loop receives
   * their outcomes, and then `TooManyFailuresError`. With a checkpoint, the job can be resumed.
   * @default Infinity
   */
  stopAfterFailures?: number | undefined;
  /**
   * Returns the outcomes in the order of the inputs. By default they come in the order in which the tasks end.
   * @default false
   */
  ordered?: boolean | undefined;
  /** Number of inputs, for `timeLeft` in the progress report. Default: the size of an array, set or map. */
  total?: number | undefined;
  /**
   * A file of outcomes, one JSON object per line. Each outcome is appended before the loop receives it. Inputs whose
   * outcome is already in the file are skipped, so that a job that was killed can be resumed. At the end of the job, the
   * file has one line per input. A task whose value is not data that JSON can hold fails with `TaskResultError`.
   * Default: none.
   */
  checkpoint?: string | CheckpointOptions | undefined;
}

/**
 * Options of `mapPooledBrowsers`: the options of each lease, and those of the tasks. Times are in milliseconds.
 *
 * With `name`, the leases are named `<name>-1`, `<name>-2`, and so on. `retry` is also the backoff between the attempts
 * of a task. `isolation` replaces `context`.
 */
export interface MapOptions<
  Library extends LibraryTypes = LibraryTypes,
  Input = unknown,
  Session extends object = BrowserSession,
>
  extends
    Omit<LeaseOptions<Library, Session>, 'context' | 'contextOptions'>,
    InputOptions<Library['contextOptions'], Input>,
    TaskOptions {}

const checkpoint = checksOf<CheckpointOptions>()({ path: text(), retryRejected: optional(flag(), true) });

/** The checked option `checkpoint`. */
export type CheckpointSettings = Checked<typeof checkpoint>;

export const jobChecks = checksOf<JobOptions>()({
  ...artifactsChecks,
  concurrency: optional(wholeNumber(1), 4),
  pagesPerLease: optional(wholeNumber(1), 1),
  isolation: optional(oneOf('context', 'storage', 'none'), 'context'),
  shouldRetry:
    optional(callback<(error: unknown, attempt: AttemptFacts) => boolean | PromiseLike<boolean>>()),
  taskTimeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
  tasksPerLease: optional(countOrInfinity(), Number.POSITIVE_INFINITY),
  maxLeaseAge: optional(milliseconds(), Number.POSITIVE_INFINITY),
  idleTimeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
  hostConcurrency: optional(countOrInfinity(), Number.POSITIVE_INFINITY),
  hostDelay: optional(notNegative('a number of milliseconds', LONGEST_TIMER), 0),
  onProgress: optional(callback<(progress: MapProgress) => void>()),
});

const inputChecks = checksOf<InputOptions>()({
  contextOptions: optional(
    anyOf(
      'an object, or a function that returns one',
      callback<(input: unknown, index: number) => object | undefined>(),
      check<object>('an object', isRecord),
    ),
  ),
  hostOf: optional(callback<(input: unknown) => string | undefined>()),
});

const taskChecks = checksOf<TaskOptions>()({
  ...jobChecks,
  retries: optional(wholeNumber(0), 0),
  stopAfterFailures: optional(countOrInfinity(), Number.POSITIVE_INFINITY),
  ordered: optional(flag(), false),
  total: optional(wholeNumber(0)),
  checkpoint: optional(
    orShort(group(checkpoint, 'a path, or { path, retryRejected }'), (path: string) => ({ path })),
  ),
});

// `isolation` replaces `context`.
const { context: _context, ...eachLease } = leaseChecks;
/** The options of each browser of a job, besides those of its tasks. */
export const browserChecks = { ...eachLease, ...inputChecks };
const mapChecks = checksOf<MapOptions<LibraryTypes, unknown, never>>()({ ...browserChecks, ...taskChecks });

/** The checked options with their defaults: those of each lease, and those of the tasks. */
export type MapSettings = Omit<AllSettings, 'contextOptions'> &
  Checked<typeof taskChecks> &
  Checked<typeof inputChecks>;

/** Checks all options before anything is sent. */
export function readMapOptions(options: object, connector: CheckingConnector): MapSettings {
  const settings = readLeaseOptions(mapChecks, options, { caller: 'mapPooledBrowsers', connector });
  refuseCombinations(settings, connector);
  return settings;
}

/** Higher than the number of leases of any job. The number is part of each lease's name. */
const LAST_LEASE = 999_999;

/** Refuses options that exclude each other in a job. */
export function refuseCombinations(
  settings: AllSettings & Checked<typeof jobChecks>,
  connector: CheckingConnector,
): void {
  const { name, artifacts, downloads, isolation, pagesPerLease, protocol } = settings;
  if (name) readOption(leaseName(), 'name', nameOfLease(name, LAST_LEASE));
  const refusal = connector.refusal(protocol, isolation);
  if (refusal) throw new InvalidOptionError('isolation', refusal);
  if (downloads !== undefined && protocol === 'bidi' && pagesPerLease > 1)
    throw new InvalidOptionError('downloads', UNKNOWN_PAGE);
  if (artifacts?.trace && isolation === 'none' && pagesPerLease > 1)
    throw new InvalidOptionError('artifacts.trace', SHARED_CONTEXT);
}

const UNKNOWN_PAGE =
  "With protocol 'bidi', the page of a download is unknown: use downloads with pagesPerLease 1, or with protocol 'cdp'.";

const SHARED_CONTEXT =
  'A context has one trace at a time, and with isolation none the tasks of a browser share a context: use another ' +
  'isolation, pagesPerLease 1, or no artifacts.trace.';

/** Adds a number to the name, because active leases must have different names. */
export function nameOfLease(name: string, lease: number): string {
  return `${name}-${lease}`;
}
