import type { Connector } from '../../drivers/connector.js';
import { readConnector } from '../../calls/options.js';
import type { LibraryTypes } from '../../lease/options.js';
import { resolvePools, type Pools } from '../../pool/browser-pool.js';
import type { BrowserSession } from '../../services/kernel-api.js';
import { callback, readOption } from '../../shared/options.js';
import type { TaskFacts } from '../outcome.js';
import { Job } from '../run-job.js';
import { readQueueName, readWorkOptions, type WorkOptions } from './options.js';
import { QueueSource } from './queue-source.js';
import { RedisLink } from './redis.js';

/** What one worker did. */
export interface WorkSummary {
  /** Number of inputs whose task succeeded here. */
  succeeded: number;
  /** Number of inputs that failed here for the last time. */
  failed: number;
}

/**
 * Runs a task for the inputs of a queue, on browsers leased from a pool, until `signal` aborts. Any number of processes
 * and machines can do this with the same queue. Browsers are leased while the queue has inputs, and released after
 * `idleTimeout` without any.
 *
 * An abort ends the running tasks, returns their inputs to the queue and releases the browsers. An input whose worker
 * is killed runs again elsewhere. A task can therefore run more than once for an input: it must tolerate that.
 *
 * @param queueName Name of the queue of `enqueueInputs`.
 * @param pool A `BrowserPool`, or the id or name of a pool of the service that the environment variables name.
 * @param fn The task, called once per attempt. Its value must be data that JSON can hold.
 * @returns After the abort, what this worker did.
 * @throws `InvalidOptionError`; `QueueError` when Redis is unreachable; `PoolServiceError` when the service refuses;
 *   `ConnectError` when no browser is usable; `MissingLibraryError` without bullmq and ioredis.
 */
export async function workPooledBrowsers<Handles, Input, Value, Session extends object = BrowserSession>(
  queueName: string,
  pool: Pools<Session>,
  fn: (task: Handles & TaskFacts<Input, Session>) => Value | PromiseLike<Value>,
  options: WorkOptions<LibraryTypes, Input, Session> & { connector: Connector<Handles> },
): Promise<WorkSummary> {
  const { connector, rest } = readConnector<Handles, typeof options>(options, 'workPooledBrowsers');
  readOption(callback(), 'fn', fn);
  const queue = readQueueName(queueName);
  const settings = readWorkOptions(rest, connector);
  const plan = { pools: resolvePools(pool), connector, fn, settings };
  await using redis = await RedisLink.open(settings);
  const job = new Job({ ...plan, source: await QueueSource.open<Input>(queue, redis, settings) });
  try {
    await job.summary();
  } catch (error) {
    // The abort is the usual end of a worker.
    if (!settings.signal?.aborted || error !== settings.signal.reason) throw error;
  }
  const { succeeded, failed } = job.counts;
  return { succeeded, failed };
}
