import type { Connector } from '../connect/connector.js';
import { Lease } from '../lease/lease.js';
import { resolvePool, type BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession } from '../service/services/kernel.js';
import { isTransientError } from '../service/status.js';
import { LinkedAbort } from '../shared/abort.js';
import { InvalidOptionError } from '../shared/errors.js';
import { BrowserLostError, ConnectError, AcquireTimeoutError } from '../shared/lease-errors.js';
import { backoff, clock, delay } from '../shared/clock.js';
import { NOT_NEEDED } from './backlog.js';
import { openCheckpoint } from './checkpoint.js';
import { iterableSource } from './input-source.js';
import { Job, type JobPlan } from './job.js';
import { LeasedBrowser, type BrowserEnd } from './leased-browser.js';
import { nameOfLease, readMapOptions, type MapOptions } from './options.js';
import type { Outcome, TaskCallback } from './outcome.js';
import { returningData } from './task-value.js';

/** The outcomes of a job, for `for await`. Leaving the loop ends the job and releases every browser. */
export type Outcomes<Input, Value, Session extends object = BrowserSession> = AsyncIterableIterator<
  Outcome<Input, Value, Session>,
  undefined,
  void
> &
  AsyncDisposable;

/**
 * Calls `fn` for every input, on browsers leased from a pool, and yields the outcome of each input. Nothing is leased
 * or pulled before the loop begins. Inputs are pulled when they are needed, and not while the loop is busy.
 *
 * A failed task is an outcome, not an error of the loop. Leaving the loop, or aborting `signal`, ends the running
 * tasks, releases the browsers and closes the inputs; the inputs of these tasks have no outcome. A browser that is
 * granted after that is released in the background, and `pool.close()` waits for its release.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool of the service that the environment variables name.
 * @param inputs An array, or another iterable or async iterable. If it throws, the loop ends with that error after the
 *   running tasks have their outcomes.
 * @param fn The task, called once per attempt.
 * @throws `InvalidOptionError` before the loop. In the loop: `PoolServiceError` when the service refuses;
 *   `AcquireTimeoutError` or `ConnectError` when no browser is available or usable; `CheckpointError`;
 *   `TooManyFailuresError`; the reason of `signal`.
 */
export function mapPooledBrowsers<Handles, Input, Value, Session extends object = BrowserSession>(
  pool: BrowserPool<Session> | string,
  inputs: Iterable<Input> | AsyncIterable<Input>,
  fn: TaskCallback<Handles, Input, Value, Session>,
  { connector, ...options }: MapOptions & { connector: Connector<Handles> },
): Outcomes<Input, Value, Session> {
  if (typeof fn !== 'function') throw new InvalidOptionError('fn', 'The third argument must be a function.');
  const settings = readMapOptions(options, connector);
  const { checkpoint } = settings;
  const source = iterableSource(inputs);
  const task = fn as TaskCallback<Handles, Input, Value, object>;
  const plan = { pool: resolvePool(pool), connector, settings, source };
  const outcomes =
    checkpoint === undefined
      ? runJob({ ...plan, fn: task })
      : runJob({ ...plan, fn: returningData(task), openSink: () => openCheckpoint(checkpoint) });
  return outcomes as Outcomes<Input, Value, Session>;
}

/** Starts a job when its first outcome is requested. */
export function runJob<Handles, Input, Value>(
  plan: JobPlan<Handles, Input, Value>,
): Outcomes<Input, Value, object> {
  const job = new Job(plan);
  const yielded = job.outcomes();
  let running: Promise<void> | undefined;
  const end = async () => {
    running ??= Promise.resolve();
    job.leave();
    await Promise.all([running, yielded.return(undefined)]);
  };
  const outcomes: Outcomes<Input, Value, object> = {
    next: () => {
      running ??= job.run(() => new Workers(job).run());
      return yielded.next();
    },
    return: async () => {
      await end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => outcomes,
    [Symbol.asyncDispose]: end,
  };
  return outcomes;
}

/** Number of failed leases in a row after which a worker ends the job, if no other browser works. */
const MAX_FAILURES = 3;

/** The workers of a job. Each leases one browser after another, while tasks wait for one. */
class Workers<Handles, Input, Value> {
  readonly #job: Job<Handles, Input, Value>;
  /** Number of leases so far. */
  #leases = 0;
  /** Number of browsers that work now. */
  #open = 0;
  /** When a browser was last granted, opened or released. */
  #lastOpen = Number.NEGATIVE_INFINITY;

  constructor(job: Job<Handles, Input, Value>) {
    this.#job = job;
  }

  /** Resolves when all tasks are finished or the job was stopped, and every browser is released. */
  async run(): Promise<void> {
    const { concurrency } = this.#job.plan.settings;
    await Promise.all(Array.from({ length: concurrency }, () => this.#work()));
  }

  async #work(): Promise<void> {
    const { backlog, signal, plan } = this.#job;
    let released: Promise<unknown> | undefined;
    try {
      for (let failures = 0; ;) {
        const abort = new LinkedAbort(signal);
        const end = (await backlog.reserve(abort)) ? await this.#useLease(abort) : undefined;
        // The next browser is acquired while the service releases this one. Releases must not accumulate.
        await released;
        released = (end?.released ?? Promise.resolve()).finally(() => abort.dispose());
        if (!end || signal.aborted) return;
        if (end.begun > 0) failures = 0;
        if (end.error === undefined || end.error === NOT_NEEDED) continue;
        failures++;
        if (this.#isFatal(end.error, failures)) return this.#job.fail(end.error);
        await delay(backoff(plan.settings.retry, failures), signal).catch(() => {});
      }
    } finally {
      await released;
    }
  }

  /** Leases a browser and runs tasks there. Never rejects: `error` is why the lease failed or ended early. */
  async #useLease(abort: LinkedAbort): Promise<BrowserEnd> {
    const { backlog } = this.#job;
    let lease: Lease<Handles>;
    try {
      lease = await this.#lease(abort.signal);
    } catch (error) {
      backlog.endReservation(abort);
      // Such an error came after a browser was granted.
      if (error instanceof ConnectError) this.#lastOpen = clock.now();
      if (error instanceof AcquireTimeoutError) backlog.handBack();
      // Another worker may lease a browser for the task.
      backlog.dispatch();
      return { begun: 0, error, released: Promise.resolve() };
    }
    this.#count(1);
    // No dispatch before the lanes wait: another worker would lease a browser for the task that they take.
    backlog.endReservation(abort);
    const end = await new LeasedBrowser(this.#job, lease, abort).work();
    this.#count(-1);
    const noteEnd = () => (this.#lastOpen = clock.now());
    return { ...end, released: end.released.then(noteEnd) };
  }

  #lease(signal: AbortSignal): Promise<Lease<Handles>> {
    const { pool, connector, settings } = this.#job.plan;
    this.#leases++;
    const name = settings.name && nameOfLease(settings.name, this.#leases);
    const isOwnContextUsed = settings.isolation === 'none';
    return Lease.open({ pool, connector, settings: { ...settings, name, signal }, isOwnContextUsed });
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
    if (this.#job.plan.source.isShared) return false;
    // In a pool smaller than the concurrency, other workers had the browsers while this worker waited.
    return clock.now() - this.#lastOpen >= this.#job.plan.settings.acquireTimeout;
  }
}

/** Whether another browser or a later attempt may succeed. A wrong token or pool stays wrong. */
function isTransient(error: unknown): boolean {
  const types = [AcquireTimeoutError, BrowserLostError, ConnectError];
  return isTransientError(error) || types.some((type) => error instanceof type);
}
