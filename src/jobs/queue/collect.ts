import type { Job } from 'bullmq';
import { LinkedAbort } from '../../shared/abort.js';
import { delay } from '../../shared/clock.js';
import { readOptions } from '../../shared/options.js';
import { CollectorLock } from './collector-lock.js';
import { forgetLists, openQueue, readLists, type InputQueue } from './input-lists.js';
import { collectChecks, readQueueName, type CollectOptions, type CollectSettings } from './options.js';
import { ProgressReporter } from './queue-progress.js';
import {
  isInput,
  outcomeOf,
  reportForeign,
  reportLost,
  type QueuedInput,
  type QueuedOutcome,
} from './queued-job.js';
import { RedisLink } from './redis.js';
import { readJobs } from './unreadable-job.js';

/** Number of outcomes that are in memory at a time. */
const BATCH = 100;
/** Pause in ms while there is no outcome. */
const PAUSE = 200;

const STATES = ['completed', 'failed'] as const;

/**
 * Yields the outcomes of a queue as its workers finish them, and removes them from Redis. An outcome is removed after the
 * loop has asked for a later one: if this process is killed, the last outcomes are yielded again next time, up to 100 of
 * them. One process at a time can collect from a queue.
 *
 * The loop ends when all inputs of every `enqueueInputs` have their outcome. Before the first `enqueueInputs` it waits.
 * Jobs that other programs have added stay in Redis; each causes a warning.
 *
 * @param queueName Name of the queue of `enqueueInputs`.
 * @throws `InvalidOptionError` at once. In the loop: `QueueError` when Redis is unreachable, has lost the inputs, or another
 *   process collects; the reason of `signal`; `MissingLibraryError` without bullmq and ioredis.
 */
export function collectOutcomes(
  queueName: string,
  options: CollectOptions = {},
): AsyncGenerator<QueuedOutcome, void, undefined> {
  const name = readQueueName(queueName);
  return collect(name, readOptions(collectChecks, options, 'collectOutcomes'));
}

async function* collect(
  name: string,
  settings: CollectSettings,
): AsyncGenerator<QueuedOutcome, void, undefined> {
  await using collector = await Collector.open(name, settings);
  yield* collector.outcomes();
}

/** The only process that collects the outcomes of a queue. */
export class Collector implements AsyncDisposable {
  readonly queue: InputQueue;
  readonly #lock: CollectorLock;
  readonly #signal: AbortSignal | undefined;
  readonly #list: string | undefined;
  readonly #reporter: ProgressReporter;
  /** Ids of the jobs that are not collected: of other programs and other lists. They stay in Redis. */
  readonly #foreign = new Set<string>();

  /**
   * @param list The only list whose outcomes are collected. Default: all.
   * @throws `QueueError` if another process collects.
   */
  static async open(name: string, settings: CollectSettings, list?: string): Promise<Collector> {
    const redis = await RedisLink.open(settings);
    try {
      const queue = await openQueue(name, redis, settings);
      return new Collector(queue, await CollectorLock.take(queue, settings.signal), settings, list);
    } catch (error) {
      await redis[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(
    queue: InputQueue,
    lock: CollectorLock,
    settings: CollectSettings,
    list: string | undefined,
  ) {
    this.queue = queue;
    this.#lock = lock;
    this.#list = list;
    this.#signal = settings.signal;
    this.#reporter = new ProgressReporter(queue, settings);
  }

  async *outcomes(): AsyncGenerator<QueuedOutcome, void, undefined> {
    const { queue, redis } = this.queue;
    const abort = new LinkedAbort(this.#signal);
    const { signal } = abort;
    const { lost } = this.#lock;
    lost.addEventListener('abort', () => abort.abort(lost.reason), { once: true });
    let areKnown = false;
    try {
      for (;;) {
        // Read before the counts: nothing is added after the last list is complete.
        const { exist, areComplete } = await readLists(this.queue, areKnown, this.#list);
        areKnown = exist;
        let foreign = 0;
        for (const state of STATES) foreign += yield* this.#takeAll(state, signal);
        const isEmpty = areComplete && (await redis.guard(queue.getJobCountByTypes())) === foreign;
        if (isEmpty && (await forgetLists(this.queue, this.#list))) return;
        await this.#reporter.report();
        await delay(PAUSE, signal);
      }
    } finally {
      abort.dispose();
      await this.#reporter.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
    await this.queue.redis[Symbol.asyncDispose]();
  }

  /** Yields the outcomes of one state until there is none. Returns the number of jobs of other programs in this state. */
  async *#takeAll(
    state: (typeof STATES)[number],
    signal: AbortSignal,
  ): AsyncGenerator<QueuedOutcome, number, undefined> {
    const { queue, redis } = this.queue;
    for (;;) {
      signal.throwIfAborted();
      const found = await readJobs(queue, redis, state, BATCH + this.#foreign.size);
      const jobs = found.flatMap(({ job }) => (job && this.#isOurs(job) ? [job] : []));
      for (const { id, job } of found) {
        if (this.#foreign.has(id) || (job && this.#isOurs(job))) continue;
        this.#foreign.add(id);
        if (job) reportForeign(job, 'its result is not collected');
        else reportLost(id, queue.name);
      }
      if (jobs.length === 0) return found.length;
      const received: Job[] = [];
      try {
        for (const job of jobs) {
          const outcome = outcomeOf(job, state);
          this.#reporter.count(outcome);
          yield outcome;
          received.push(job);
        }
      } finally {
        await redis.guard(Promise.all(received.map((job) => job.remove())));
      }
      await this.#reporter.report();
    }
  }

  #isOurs(job: Job): job is Job<QueuedInput> {
    return isInput(job) && (this.#list === undefined || job.data.list === this.#list);
  }
}
