import { hostname } from 'node:os';
import type { Connector, Protocol } from '../../connect/connector.js';
import type { LeaseOptions } from '../../lease/options.js';
import {
  abortSignal,
  callback,
  check,
  checked,
  flag,
  group,
  milliseconds,
  optional,
  readOption,
  text,
  wholeNumber,
  withDefault,
  type OptionsInput,
  type OptionsOutput,
} from '../../shared/options.js';
import { laneOptions, leaseOptionsOfMap, readTaskOptions, type MapSettings } from '../options.js';
import type { QueueProgress } from './queue-progress.js';
import { faultOfAddress, type RedisAddress } from './redis-address.js';

/** The options of all functions that use a queue. */
const queueOptions = {
  /**
   * The Redis of the queue: a URL (`redis://` or `rediss://`), or ioredis options. Default: `REDIS_URL`.
   */
  connection: optional(checked<RedisAddress>(faultOfAddress)),
  /**
   * Prefix of BullMQ's keys in Redis.
   * @default 'bull'
   */
  prefix: withDefault(text(), 'bull'),
  /**
   * Time in ms that a lost Redis is waited for. Then the call fails with `QueueError`. The first connection may take 5 s.
   * @default 60000
   */
  redisTimeout: withDefault(milliseconds(), 60_000),
};

const backoff = {
  /** Milliseconds before the first retry. */
  delay: milliseconds(),
  /** Whether each further delay is twice the previous one. Default: true. */
  exponential: withDefault(flag(), true),
};

export const enqueueOptions = {
  ...queueOptions,
  /**
   * Number of attempts of each input.
   * @default 1
   */
  attempts: withDefault(wholeNumber(1), 1),
  /**
   * Pause before a retry: `{ delay, exponential }`, up to twice as short by chance.
   * @default { delay: 1000 }
   */
  backoff: withDefault(group(backoff), { delay: 1000 }),
  /** Priority of these inputs, 1 to 2,097,152; lower numbers first. Default: none, which is before all priorities. */
  priority: optional(wholeNumber(1, 2_097_152)),
  /**
   * Name of this list of inputs. An input that is in the queue is not added again: with the same list, index and value.
   * @default 'default'
   */
  list: withDefault(listName(), 'default'),
  /**
   * Number of jobs in the queue, results included, at which adding pauses until some are collected: each needs memory of
   * Redis.
   * @default Infinity
   */
  maxJobs: withDefault(
    check<number>('a number above 0', (value) => typeof value === 'number' && value > 0),
    Number.POSITIVE_INFINITY,
  ),
  /** Stops adding; the promise rejects with the signal's reason. */
  signal: optional(abortSignal()),
};

export const collectOptions = {
  ...queueOptions,
  /** Number of outcomes to expect, for `timeLeft` in the progress report. Default: unknown. */
  total: optional(wholeNumber(0)),
  /** Receives the progress of the whole queue, every second. Default: none. */
  onProgress: optional(callback<(progress: QueueProgress) => void>()),
  /** Stops collecting; the loop ends with the signal's reason. */
  signal: optional(abortSignal()),
};

const limiter = {
  /** Number of tasks. */
  max: wholeNumber(1),
  /** Period in ms. */
  duration: milliseconds(),
};

/** The options of a worker that other functions do not have, or that have other defaults there. */
const ownOptions = {
  ...laneOptions,
  ...queueOptions,
  /** How long an input waits here for a browser before it goes back to the queue, in ms. Default: 60,000. */
  acquireTimeout: withDefault(milliseconds(), 60_000),
  /** A guard process releases the browsers of a killed worker (SIGKILL, out of memory). Default: `true`. */
  releaseOnCrash: withDefault(flag(), true),
  /**
   * Time in ms after which a browser without a task is released. It is leased again when the next input comes.
   * @default 5000
   */
  idleTimeout: withDefault(milliseconds(), 5000),
  /**
   * Age in ms at which a browser is released and another one leased: workers take turns on a pool that is too small.
   * @default 300000
   */
  maxLeaseAge: withDefault(milliseconds(), 300_000),
  /** Name of this worker in the progress report. Default: host name and process id. */
  workerName: withDefault(text(), `${hostname()}:${process.pid}`),
  /** Most tasks of all workers in a period, as `{ max, duration }`. Default: no limit. */
  limiter: optional(group(limiter)),
  /**
   * Time in ms after which the input of a dead worker is free for others. A live worker renews it four times as often.
   * @default 30000
   */
  lockDuration: withDefault(milliseconds(), 30_000),
  /**
   * Time in ms between two searches for inputs of dead workers.
   * @default 10000
   */
  stalledInterval: withDefault(milliseconds(), 10_000),
  /**
   * How many workers one input may lose. The next one that dies with it makes the input fail.
   * @default 5
   */
  maxStalledCount: withDefault(wholeNumber(0), 5),
};

const workOptions = { ...leaseOptionsOfMap, ...ownOptions };

/** Options of `enqueueInputs`. Times are in milliseconds. */
export interface EnqueueOptions extends OptionsInput<typeof enqueueOptions> {}
/** Options of `collectOutcomes`. Times are in milliseconds. */
export interface CollectOptions extends OptionsInput<typeof collectOptions> {}

/**
 * Options of `workPooledBrowsers`: those of each lease, of the tasks, and of the queue. Times are in milliseconds.
 *
 * With `name`, the leases are named `<name>-<random>-1`, and so on: all workers can have the same options.
 *
 * @interface
 */
export type WorkOptions<C extends object = object, P = Protocol> = Omit<
  LeaseOptions<C, P>,
  'context' | keyof typeof ownOptions
> &
  OptionsInput<typeof ownOptions>;

export type QueueSettings = OptionsOutput<typeof queueOptions>;
export type EnqueueSettings = OptionsOutput<typeof enqueueOptions>;
export type CollectSettings = OptionsOutput<typeof collectOptions>;
export type WorkSettings = MapSettings & OptionsOutput<typeof workOptions>;

export function readWorkOptions(options: object, connector: Pick<Connector, 'refusal'>): WorkSettings {
  return readTaskOptions(workOptions, options, { caller: 'workPooledBrowsers', connector });
}

export function readQueueName(name: unknown): string {
  const queueName = checked<string>((value) =>
    typeof value === 'string' && /^[^:]+$/.test(value) ? undefined : 'must be a name without a colon',
  );
  return readOption(queueName, 'queueName', name);
}

function listName() {
  return check<string>('a name of letters, digits, . _ and -', (value) => {
    return typeof value === 'string' && /^[\w.-]+$/.test(value);
  });
}
