import { randomUUID } from 'node:crypto';
import type { Job, Worker } from 'bullmq';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { clock, delay } from '../../shared/clock.js';
import type { InputSource, PulledInput } from '../input-source.js';
import { mayRetry, type Outcome } from '../outcome.js';
import { loadBullMQ } from './bullmq.js';
import type { WorkSettings } from './options.js';
import { isInput, reportForeign, reportLostWorker, storedAttempt, storedError } from './queued-job.js';
import type { RedisLink } from './redis.js';
import { createAbort, isError } from '../../shared/globals.js';
import { repairJob } from './unreadable-job.js';

/** An empty answer that comes sooner, in ms, means that the queue has jobs which may not start yet. */
const EMPTY_ANSWER = 10;
const EMPTY_PAUSE = 100;
/** How often a lock is renewed while it lasts: a busy process is late. */
const RENEWALS = 4;
/** Time for returning the inputs without an outcome to the queue, in ms. */
const CLOSE_TIMEOUT = 5000;

/**
 * Takes jobs from a queue, one when a browser needs one, and finishes them with the outcome of their task. BullMQ's
 * worker fetches them and finds those of dead workers; it runs no task itself.
 */
export class QueueSource<Input> implements InputSource<Input> {
  readonly hasOtherJobs = true;
  readonly storesJson = true;

  readonly #Job: typeof Job;
  readonly #redis: RedisLink;
  readonly #worker: Worker;
  readonly #settings: WorkSettings;
  readonly #token = randomUUID();
  /** The jobs that this source has locked. */
  readonly #held = new Map<string, Job>();
  /** Locked jobs that are not pulled yet: Redis returns the next job when one is finished. */
  readonly #fetched: Job[] = [];
  readonly #closing = createAbort();
  readonly #renewal: NodeJS.Timeout;
  #taking: Promise<Job | undefined> | undefined;

  static async open<Input>(
    queueName: string,
    redis: RedisLink,
    settings: WorkSettings,
  ): Promise<QueueSource<Input>> {
    const bullmq = await loadBullMQ();
    const { prefix, limiter, lockDuration, stalledInterval, maxStalledCount } = settings;
    const worker = new bullmq.Worker(queueName, null, {
      connection: redis.client,
      name: settings.workerName,
      prefix,
      lockDuration,
      stalledInterval,
      maxStalledCount,
      ...(limiter && { limiter }),
    });
    // The link to Redis reports errors of the connection.
    worker.on('error', () => {});
    worker.on('stalled', (id) => {
      void redis
        .guard(bullmq.Job.fromId(worker, id))
        .then((job) => job && reportLostWorker(job))
        .catch(() => {});
    });
    await redis.guard(worker.waitUntilReady());
    await redis.guard(worker.startStalledCheckTimer());
    return new QueueSource(bullmq.Job, redis, worker, settings);
  }

  private constructor(JobClass: typeof Job, redis: RedisLink, worker: Worker, settings: WorkSettings) {
    this.#Job = JobClass;
    this.#redis = redis;
    this.#worker = worker;
    this.#settings = settings;
    this.#renewal = clock.setInterval(() => void this.#renewLocks(), settings.lockDuration / RENEWALS);
  }

  async pull(): Promise<PulledInput<Input> | undefined> {
    while (!this.#closing.signal.aborted) {
      const job = this.#fetched.pop() ?? (await this.#take());
      const pulled = job && (await this.#open(job));
      if (pulled) return pulled;
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await raceTimeout(CLOSE_TIMEOUT, () => this.#end()).catch(() => {});
    clock.clearInterval(this.#renewal);
  }

  async #end(): Promise<void> {
    // Ends the wait for a job. A job that arrives at this moment is one of those that are returned.
    await this.#redis.guard(this.#worker.close(true));
    await this.#taking?.catch(() => {});
    await Promise.all([...this.#held.values()].map((job) => this.#returnToSource(job)));
  }

  async #take(): Promise<Job | undefined> {
    const { signal } = this.#closing;
    const began = clock.now();
    this.#taking = this.#worker.getNextJob(this.#token).then((job) => this.#hold(job));
    const job = await raceAbort(this.#redis.guard(this.#taking), signal).catch(async (error: unknown) => {
      if (signal.aborted) return undefined;
      const repaired = await this.#takeUnreadable();
      if (repaired) return repaired;
      throw error;
    });
    const isPaused = !job && clock.now() - began < EMPTY_ANSWER;
    if (isPaused) await delay(EMPTY_PAUSE, signal).catch(() => {});
    return job;
  }

  #hold(job: Job | undefined): Job | undefined {
    if (job) this.#held.set(job.id!, job);
    return job;
  }

  /** Finds the job that was locked for this source, but that BullMQ could not read, and removes what it can't read. */
  async #takeUnreadable(): Promise<Job | undefined> {
    const redis = this.#redis;
    const { client } = redis;
    for (const id of await redis.guard(client.lrange(this.#worker.toKey('active'), 0, -1))) {
      if (this.#held.has(id)) continue;
      const lock = await redis.guard(client.get(`${this.#worker.toKey(id)}:lock`));
      if (lock === this.#token && (await repairJob(this.#worker, redis, id)))
        return this.#hold(await redis.guard(this.#Job.fromId(this.#worker, id)));
    }
    return undefined;
  }

  /** Fails jobs that must not run: those of other programs, and those that have lost too many workers. */
  async #open(job: Job): Promise<PulledInput<Input> | undefined> {
    // The scripts that move a job do half of it, and fail, if they can't read it. Inputs have no parent.
    if (!isInput(job) || Number.isNaN(job.attemptsMade) || job.parentKey !== undefined)
      await this.#redis.guard(repairJob(this.#worker, this.#redis, job.id!));
    if (!job.deferredFailure && isInput(job)) {
      const { index, input, taskTimeout } = job.data;
      return {
        index,
        input: input as Input,
        // Other programs can write into the queue.
        ...(typeof taskTimeout === 'number' && taskTimeout > 0 && { taskTimeout }),
        attempts: job.attemptsMade,
        settle: (outcome, signal) => this.#settle(job, outcome, signal),
        returnToSource: () => void this.#returnToSource(job),
      };
    }
    const reason = job.deferredFailure ?? reportForeign(job, 'it is moved to the failed jobs');
    await this.#finish(job, () => job.moveToFailed(storedError(new Error(reason), false), this.#token));
    return undefined;
  }

  /** Resolves to false if the input runs again. */
  async #settle(job: Job, outcome: Outcome<unknown, unknown, object>, signal: AbortSignal): Promise<boolean> {
    const fetchNext = !this.#closing.signal.aborted;
    const stored = storedAttempt(outcome);
    if (outcome.status === 'fulfilled')
      return this.#finish(job, () => job.moveToCompleted(stored, this.#token, fetchNext));
    const { reason, index, input, attempts: attempt } = outcome;
    const { shouldRetry } = this.#settings;
    const isRetried = await raceAbort(mayRetry(reason, { input, index, attempt }, shouldRetry), signal);
    const error = storedError(reason, isRetried);
    return this.#finish(job, async () => {
      await job.updateProgress(stored);
      return job.moveToFailed(error, this.#token, fetchNext);
    });
  }

  /** Resolves to false if the job is not finished: BullMQ retries it, or another worker has it. */
  async #finish(job: Job, move: () => Promise<unknown>): Promise<boolean> {
    let next: unknown;
    try {
      this.#redis.batch();
      next = await this.#redis.guard(move()).catch(async (error: unknown) => {
        if (isLost(error) || !(await repairJob(this.#worker, this.#redis, job.id!))) throw error;
        return this.#redis.guard(move());
      });
    } catch (error) {
      if (isLost(error)) return false;
      // The job was moved, but the next one can't be read.
      const unreadable = await this.#takeUnreadable();
      if (!unreadable) throw error;
      this.#fetched.push(unreadable);
      const states = await this.#redis.guard(Promise.all([job.isCompleted(), job.isFailed()]));
      return states.includes(true);
    } finally {
      this.#held.delete(job.id!);
    }
    this.#keep(next);
    return job.finishedOn !== undefined;
  }

  /** Keeps the next job, which Redis returns as its fields and its id. */
  #keep(next: unknown): void {
    if (!Array.isArray(next) || !next[0]) return;
    this.#fetched.push(this.#hold(this.#Job.fromJSON(this.#worker, next[0], String(next[1])))!);
  }

  /** Returns a job to the queue, as the next one. If that fails, others take the job when its lock has expired. */
  async #returnToSource(job: Job): Promise<void> {
    this.#held.delete(job.id!);
    await this.#redis.guard(job.moveToWait(this.#token)).catch(() => {});
  }

  /** A lock that has expired can't be renewed: another worker runs the input, and its outcome counts. */
  async #renewLocks(): Promise<void> {
    const ids = [...this.#held.keys()];
    const tokens = ids.map(() => this.#token);
    if (ids.length === 0) return;
    await this.#worker.extendJobLocks(ids, tokens, this.#settings.lockDuration).catch(() => {});
  }
}

/** Whether a job is locked by another worker, or was removed. BullMQ's codes for that are negative numbers. */
function isLost(error: unknown): boolean {
  return isError(error) && Number(Reflect.get(error, 'code')) < 0;
}
