import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { readLeaseOptions, type LeaseOptions } from '../../calls/options.js';
import type { CheckingConnector } from '../../drivers/connector.js';
import type { LibraryTypes } from '../../lease/options.js';
import type { BrowserSession } from '../../services/kernel-api.js';
import { LONGEST_TIMER } from '../../shared/clock.js';
import {
  abortSignal,
  callback,
  check,
  checked,
  checksOf,
  flag,
  group,
  milliseconds,
  optional,
  readOption,
  text,
  wholeNumber,
  type Checked,
} from '../../shared/options.js';
import {
  browserChecks,
  jobChecks,
  refuseCombinations,
  type JobOptions,
  type MapSettings,
  type InputOptions,
} from '../options.js';
import type { QueueProgress } from './queue-progress.js';
import { faultOfAddress, type RedisAddress } from './redis.js';

/** The options of all functions that use a queue. */
interface QueueOptions {
  /** The Redis of the queue: a URL (`redis://` or `rediss://`), or ioredis options. Default: `REDIS_URL`. */
  connection?: RedisAddress | undefined;
  /**
   * Prefix of BullMQ's keys in Redis.
   * @default 'bull'
   */
  prefix?: string | undefined;
  /**
   * Time in ms that a lost Redis is waited for. Then the call fails with `QueueError`. The first connection may take 5 s.
   * @default 60_000
   */
  redisTimeout?: number | undefined;
}

/** Pause before a retry, up to twice as short by chance. */
export interface QueueBackoff {
  /** Milliseconds before the first retry. */
  delay: number;
  /**
   * Whether each further delay is twice the previous one.
   * @default true
   */
  exponential?: boolean | undefined;
}

/** Options of `enqueueInputs`. Times are in milliseconds. */
export interface EnqueueOptions extends QueueOptions {
  /**
   * How often a failed input is retried, by any worker.
   * @default 0
   */
  retries?: number | undefined;
  /** Timeout of each attempt, in ms, in place of the option of the workers. Default: theirs. */
  taskTimeout?: number | undefined;
  /**
   * Pause before a retry.
   * @default { delay: 1000 }
   */
  backoff?: QueueBackoff | undefined;
  /**
   * Name of this list of inputs. An input that is in the queue is not added again: with the same list, index and value.
   * @default 'default'
   */
  list?: string | undefined;
  /**
   * Number of jobs in the queue, results included, at which adding pauses. It goes on when some are collected. Each needs
   * memory of Redis.
   * @default Infinity
   */
  maxJobs?: number | undefined;
  /** Stops adding; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Options of `collectOutcomes`. Times are in milliseconds. */
export interface CollectOptions extends QueueOptions {
  /** Number of outcomes to expect, for `timeLeft` in the progress report. Default: unknown. */
  total?: number | undefined;
  /** Receives the progress of the whole queue, every second. Default: none. */
  onProgress?: ((progress: QueueProgress) => void) | undefined;
  /** Stops collecting; the loop ends with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Most tasks in a period. */
export interface QueueLimiter {
  /** Number of tasks. */
  max: number;
  /** Period in ms. */
  duration: number;
}

/** The options of a worker that other functions do not have, or that have other defaults there. */
interface WorkerOptions extends JobOptions, QueueOptions {
  /**
   * How long an input waits here for a browser before it goes back to the queue, in ms.
   * @default 60_000
   */
  acquireTimeout?: number | undefined;
  /**
   * A guard process releases the browsers of a killed worker (SIGKILL, out of memory).
   * @default true
   */
  releaseOnCrash?: boolean | undefined;
  /**
   * Time in ms after which a browser without a task is released. It is leased again when the next input comes.
   * @default 5000
   */
  idleTimeout?: number | undefined;
  /**
   * Age in ms at which a browser is released and another one leased: workers alternate on a pool that is too small.
   * @default 300_000
   */
  maxLeaseAge?: number | undefined;
  /** Name of this worker in the progress report. Default: host name and process id. */
  workerName?: string | undefined;
  /** Most tasks of all workers in a period. Default: no limit. */
  limiter?: QueueLimiter | undefined;
  /**
   * Time in ms after which the input of a dead worker is free for others. A live worker renews it four times as often.
   * @default 30_000
   */
  lockDuration?: number | undefined;
  /**
   * Time in ms between two searches for inputs of dead workers.
   * @default 10_000
   */
  stalledInterval?: number | undefined;
  /**
   * How many workers one input may lose. The next one that dies with it makes the input fail.
   * @default 5
   */
  maxStalledCount?: number | undefined;
}

/**
 * Options of `workPooledBrowsers`: those of each lease, of the tasks, and of the queue. Times are in milliseconds.
 *
 * With `name`, the leases are named `<name>-<random>-1`, and so on: all workers can have the same options.
 */
export interface WorkOptions<
  Library extends LibraryTypes = LibraryTypes,
  Input = unknown,
  Session extends object = BrowserSession,
>
  extends
    Omit<LeaseOptions<Library, Session>, 'context' | 'contextOptions' | keyof WorkerOptions>,
    InputOptions<object, Input>,
    WorkerOptions {}

const queueChecks = checksOf<QueueOptions>()({
  connection: optional(checked<RedisAddress>(faultOfAddress)),
  prefix: optional(text(), 'bull'),
  redisTimeout: optional(milliseconds(), 60_000),
});

export const enqueueChecks = checksOf<EnqueueOptions>()({
  ...queueChecks,
  retries: optional(wholeNumber(0), 0),
  taskTimeout: optional(milliseconds()),
  backoff: optional(
    group(
      checksOf<QueueBackoff>()({ delay: milliseconds(LONGEST_TIMER), exponential: optional(flag(), true) }),
    ),
    { delay: 1000 },
  ),
  list: optional(
    check<string>(
      'a name of letters, digits, . _ and -',
      (value) => typeof value === 'string' && /^[\w.-]+$/.test(value),
    ),
    'default',
  ),
  maxJobs: optional(
    check<number>('a number above 0', (value) => typeof value === 'number' && value > 0),
    Number.POSITIVE_INFINITY,
  ),
  signal: optional(abortSignal()),
});

export const collectChecks = checksOf<CollectOptions>()({
  ...queueChecks,
  total: optional(wholeNumber(0)),
  onProgress: optional(callback<(progress: QueueProgress) => void>()),
  signal: optional(abortSignal()),
});

const workerChecks = checksOf<WorkerOptions>()({
  ...jobChecks,
  ...queueChecks,
  acquireTimeout: optional(milliseconds(), 60_000),
  releaseOnCrash: optional(flag(), true),
  idleTimeout: optional(milliseconds(), 5000),
  maxLeaseAge: optional(milliseconds(), 300_000),
  workerName: optional(text(), `${hostname()}:${process.pid}`),
  limiter: optional(
    group(checksOf<QueueLimiter>()({ max: wholeNumber(1), duration: wholeNumber(1, LONGEST_TIMER) })),
  ),
  lockDuration: optional(wholeNumber(1, LONGEST_TIMER), 30_000),
  stalledInterval: optional(milliseconds(LONGEST_TIMER), 10_000),
  maxStalledCount: optional(wholeNumber(0), 5),
});

const workChecks = checksOf<WorkOptions<LibraryTypes, unknown, never>>()({
  ...browserChecks,
  ...workerChecks,
});

export type EnqueueSettings = Checked<typeof enqueueChecks>;
export type CollectSettings = Checked<typeof collectChecks>;
export type WorkSettings = MapSettings & Checked<typeof workChecks>;

export function readWorkOptions(options: object, connector: CheckingConnector): WorkSettings {
  const read = readLeaseOptions(workChecks, options, { caller: 'workPooledBrowsers', connector });
  // Active leases must have different names, also those of other workers.
  const name = read.name && `${read.name}-${randomBytes(3).toString('hex')}`;
  // The queue counts the attempts, and a worker never stops by itself.
  const ofJob = { retries: 0, stopAfterFailures: Number.POSITIVE_INFINITY, ordered: false };
  const settings = { ...ofJob, ...read, name };
  refuseCombinations(settings, connector);
  return settings;
}

export function readQueueName(name: unknown): string {
  const queueName = checked<string>((value) =>
    typeof value === 'string' && /^[^:]+$/.test(value) ? undefined : 'must be a name without a colon',
  );
  return readOption(queueName, 'queueName', name);
}
