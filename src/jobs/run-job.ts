import { Lease } from '../lease/lease.js';
import { isTransientError } from '../net/status.js';
import { LinkedAbort } from '../shared/abort.js';
import { backoff, clock, delay } from '../shared/clock.js';
import { AcquireTimeoutError, BrowserLostError, ConnectError } from '../shared/lease-errors.js';
import { NOT_NEEDED } from './backlog.js';
import { Job, type JobPlan } from './job.js';
import { LeasedBrowser, type BrowserEnd } from './leased-browser.js';
import type { MapSummary } from './map-pooled-browsers.js';
import { nameOfLease } from './options.js';
import type { Outcome } from './outcome.js';
import { returningData } from './task-value.js';

/** A job that starts with the request for its first outcome. */
export interface RunningJob<Input, Value> {
  /** Resolves with the next outcome. */
  next(): Promise<IteratorResult<Outcome<Input, Value, object>, undefined>>;
  /** Ends the job, and releases every browser. */
  end(): Promise<void>;
  /** Runs the job to its end, without its outcomes. Rejects with the error that ended the job. */
  summary(): Promise<MapSummary>;
  /** What the job has done so far. */
  readonly counts: Pick<MapSummary, 'done' | 'failed'>;
}

/** What a job adds to the handles of a task. */
const NAMES = ['input', 'index', 'attempt', 'session', 'signal'];

export function runJob<Handles, Input, Value>(
  plan: JobPlan<Handles, Input, Value>,
): RunningJob<Input, Value> {
  const isStored = plan.settings.checkpoint !== undefined;
  const job = new Job(isStored ? { ...plan, fn: returningData(plan.fn) } : plan);
  const outcomes = job.outcomes();
  let running: Promise<void> | undefined;
  const next = () => {
    running ??= job.run(() => new Workers(job).run());
    return outcomes.next();
  };
  return {
    next,
    end: async () => {
      running ??= Promise.resolve();
      job.leave();
      await Promise.all([running, outcomes.return(undefined)]);
    },
    summary: async () => {
      while (!(await next()).done);
      return job.summary;
    },
    counts: job.progress.counts,
  };
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
    const isOwnContextUsed = settings.isolation === 'none' && settings.contextOptions === undefined;
    // The tasks open the contexts with these options.
    const lease = { ...settings, name, signal, context: 'default', contextOptions: undefined } as const;
    return Lease.open({ pool, connector, settings: lease, isOwnContextUsed, addedNames: NAMES });
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
