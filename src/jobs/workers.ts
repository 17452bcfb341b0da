import { namesOfFacts } from '../calls/callback.js';
import { adviceInside } from '../calls/nesting.js';
import { createFeatures, type PooledLease } from '../features/create-features.js';
import { openLease } from '../lease/open-lease.js';
import type { PoolList } from '../pool/browser-pool.js';
import { isTransientError } from '../net/status.js';
import { backoff, clock, delay } from '../shared/clock.js';
import {
  AcquireTimeoutError,
  BrowserLostError,
  ConnectError,
  LeaseExpiredError,
} from '../shared/lease-errors.js';
import type { JobContext } from './job-context.js';
import { TaskRunner, type BrowserEnd } from './task-runner.js';
import { nameOfLease } from './options.js';
import { NOT_NEEDED, type Reservation, type TaskQueue } from './task-queue.js';
import { loadDrivers } from '../calls/load-drivers.js';

/** Number of failed leases in a row after which a worker ends the job, if no other browser works. */
const MAX_FAILURES = 3;

/** What a job adds to the handles of a task. */
const NAMES = ['input', 'index', 'attempt', 'session', 'signal'];

/** What a worker remembers from one browser to the next. */
interface PoolPosition {
  /** Place of the pool that leased its last browser. */
  at: number;
}

/** The workers of a job. Each leases one browser after another, while tasks wait for one. */
export class Workers<Handles, Input, Value, Session extends object> {
  readonly #job: JobContext<Handles, Input, Value, Session>;
  readonly #tasks: TaskQueue<Input, Value, Session>;
  #leases = 0;
  /** Number of browsers that work now. */
  #open = 0;
  /** A worker that had its last browser from a later pool asks all pools in their order: one at a time, because it may wait for long. */
  #isTryingFirstPools = false;
  /** When a browser was last granted, opened or released. */
  #lastOpen = Number.NEGATIVE_INFINITY;

  constructor(job: JobContext<Handles, Input, Value, Session>, tasks: TaskQueue<Input, Value, Session>) {
    this.#job = job;
    this.#tasks = tasks;
  }

  /** Resolves when all tasks are finished or the job was stopped, and every browser is released. */
  async run(): Promise<void> {
    const { concurrency } = this.#job.settings;
    await Promise.all(Array.from({ length: concurrency }, () => this.#work()));
  }

  async #work(): Promise<void> {
    const { signal, settings, fail } = this.#job;
    const position: PoolPosition = { at: 0 };
    let released: Promise<unknown> | undefined;
    try {
      for (let failures = 0; ;) {
        const reservation = await this.#tasks.reserve();
        const end = reservation && (await this.#useLease(reservation, position));
        // The next browser is acquired while the service releases this one. Releases must not accumulate.
        await released;
        released = end?.released.finally(() => reservation?.abort.dispose());
        if (!end || signal.aborted) return;
        if (end.begun > 0) failures = 0;
        // A lifetime that was enough for tasks is no failure.
        const isSpent = end.begun > 0 && end.error instanceof LeaseExpiredError;
        if (end.error === undefined || end.error === NOT_NEEDED || isSpent) continue;
        failures++;
        if (this.#isFatal(end.error, failures)) return fail(end.error);
        await delay(backoff(settings.retry, failures), signal).catch(() => {});
      }
    } finally {
      await released;
    }
  }

  /** Leases a browser and runs tasks there. Never rejects: `error` is why the lease failed or ended early. */
  async #useLease(reservation: Reservation, position: PoolPosition): Promise<BrowserEnd> {
    let lease: PooledLease<Handles, Session>;
    try {
      lease = await this.#leaseFrom(position, reservation.abort.signal);
    } catch (error) {
      // Such an error came after a browser was granted.
      if (error instanceof ConnectError) this.#lastOpen = clock.now();
      reservation.cancel(error instanceof AcquireTimeoutError);
      return { begun: 0, error, released: Promise.resolve() };
    }
    this.#count(1);
    reservation.fulfill();
    const end = await new TaskRunner(this.#job, this.#tasks, lease, reservation.abort).run();
    this.#count(-1);
    const noteEnd = () => (this.#lastOpen = clock.now());
    return { ...end, released: end.released.then(noteEnd) };
  }

  /** Leases from the pool that the worker had its last browser from, or from one before it. */
  async #leaseFrom(position: PoolPosition, signal: AbortSignal): Promise<PooledLease<Handles, Session>> {
    const { pools } = this.#job;
    const triesFirstPools = position.at > 0 && !this.#isTryingFirstPools;
    const [first = pools[0], ...others] = triesFirstPools
      ? pools
      : [...pools.slice(position.at), ...pools.slice(0, position.at)];
    if (triesFirstPools) this.#isTryingFirstPools = true;
    try {
      const lease = await this.#lease([first, ...others], signal);
      position.at = pools.findIndex((pool) => pool === lease.context.pool.api);
      return lease;
    } finally {
      if (triesFirstPools) this.#isTryingFirstPools = false;
    }
  }

  async #lease(pools: PoolList<Session>, signal: AbortSignal): Promise<PooledLease<Handles, Session>> {
    const { connector, settings } = this.#job;
    this.#leases++;
    const name = settings.name && nameOfLease(settings.name, this.#leases);
    const isOwnContextUsed = settings.isolation === 'none' && settings.contextOptions === undefined;
    // The tasks open the contexts with these options.
    const own = { ...settings, name, signal, context: 'default', contextOptions: undefined } as const;
    const features = await createFeatures(own);
    return openLease({
      pools,
      connector,
      loadDrivers,
      settings: own,
      features,
      isForTasks: true,
      advise: adviceInside(),
      isOwnContextUsed,
      addedNames: [...NAMES, ...namesOfFacts(features)],
    });
  }

  #count(change: 1 | -1): void {
    this.#open += change;
    this.#lastOpen = clock.now();
    this.#job.progress.add({ leases: change });
  }

  /** @param failures Number of failures in a row, including this one. */
  #isFatal(error: unknown, failures: number): boolean {
    if (!isTransient(error)) return true;
    if (this.#open > 0) return false;
    if (!(error instanceof AcquireTimeoutError)) return failures >= MAX_FAILURES;
    if (this.#job.source.hasOtherJobs) return false;
    // In a pool smaller than the concurrency, other workers had the browsers while this worker waited.
    return clock.now() - this.#lastOpen >= this.#job.settings.acquireTimeout;
  }
}

/** Whether another browser or a later attempt may succeed. A wrong token or pool stays wrong. */
function isTransient(error: unknown): boolean {
  const types = [AcquireTimeoutError, BrowserLostError, ConnectError, LeaseExpiredError];
  return isTransientError(error) || types.some((type) => error instanceof type);
}
