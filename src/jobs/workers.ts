import type { Connector } from '../connect/connector.js';
import { createFeatures, type PooledLease } from '../features/features.js';
import { openLease } from '../lease/open-lease.js';
import { isTransientError } from '../net/status.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { LinkedAbort } from '../shared/abort.js';
import { backoff, clock, delay } from '../shared/clock.js';
import { AcquireTimeoutError, BrowserLostError, ConnectError } from '../shared/lease-errors.js';
import { LeasedBrowser, type BrowserEnd, type TaskPlan } from './leased-browser.js';
import { nameOfLease } from './options.js';
import type { Progress } from './progress.js';
import { NOT_NEEDED, type Reservation } from './task-queue.js';

/** What the workers of a job need. */
interface WorkersPlan<Handles, Input, Value, Session extends object> {
  readonly pool: BrowserPool<Session>;
  readonly connector: Connector<Handles>;
  readonly browser: TaskPlan<Handles, Input, Value, Session>;
  /** Whether other jobs use the same inputs. They may have all browsers of a pool. */
  readonly hasOtherJobs: boolean;
  readonly progress: Progress;
  /** Aborts when the job ends at once. */
  readonly signal: AbortSignal;
  /** Ends the job with an error. */
  readonly fail: (error: unknown) => void;
}

/** Number of failed leases in a row after which a worker ends the job, if no other browser works. */
const MAX_FAILURES = 3;

/** What a job adds to the handles of a task. */
const NAMES = ['input', 'index', 'attempt', 'session', 'signal'];

/** The workers of a job. Each leases one browser after another, while tasks wait for one. */
export class Workers<Handles, Input, Value, Session extends object> {
  readonly #plan: WorkersPlan<Handles, Input, Value, Session>;
  #leases = 0;
  /** Number of browsers that work now. */
  #open = 0;
  /** When a browser was last granted, opened or released. */
  #lastOpen = Number.NEGATIVE_INFINITY;

  constructor(plan: WorkersPlan<Handles, Input, Value, Session>) {
    this.#plan = plan;
  }

  /** Resolves when all tasks are finished or the job was stopped, and every browser is released. */
  async run(): Promise<void> {
    const { concurrency } = this.#plan.browser.settings;
    await Promise.all(Array.from({ length: concurrency }, () => this.#work()));
  }

  async #work(): Promise<void> {
    const { signal, browser, fail } = this.#plan;
    let released: Promise<unknown> | undefined;
    try {
      for (let failures = 0; ;) {
        const abort = new LinkedAbort(signal);
        const reservation = await browser.tasks.reserve(abort);
        const end = reservation && (await this.#useLease(reservation, abort));
        // The next browser is acquired while the service releases this one. Releases must not accumulate.
        await released;
        released = (end?.released ?? Promise.resolve()).finally(() => abort.dispose());
        if (!end || signal.aborted) return;
        if (end.begun > 0) failures = 0;
        if (end.error === undefined || end.error === NOT_NEEDED) continue;
        failures++;
        if (this.#isFatal(end.error, failures)) return fail(end.error);
        await delay(backoff(browser.settings.retry, failures), signal).catch(() => {});
      }
    } finally {
      await released;
    }
  }

  /** Leases a browser and runs tasks there. Never rejects: `error` is why the lease failed or ended early. */
  async #useLease(reservation: Reservation, abort: LinkedAbort): Promise<BrowserEnd> {
    let lease: PooledLease<Handles, Session>;
    try {
      lease = await this.#lease(abort.signal);
    } catch (error) {
      // Such an error came after a browser was granted.
      if (error instanceof ConnectError) this.#lastOpen = clock.now();
      reservation.cancel(error instanceof AcquireTimeoutError);
      return { begun: 0, error, released: Promise.resolve() };
    }
    this.#count(1);
    reservation.fulfill();
    const end = await new LeasedBrowser(this.#plan.browser, lease, abort).work();
    this.#count(-1);
    const noteEnd = () => (this.#lastOpen = clock.now());
    return { ...end, released: end.released.then(noteEnd) };
  }

  #lease(signal: AbortSignal): Promise<PooledLease<Handles, Session>> {
    const { pool, connector, browser } = this.#plan;
    const { settings } = browser;
    this.#leases++;
    const name = settings.name && nameOfLease(settings.name, this.#leases);
    const isOwnContextUsed = settings.isolation === 'none' && settings.contextOptions === undefined;
    // The tasks open the contexts with these options.
    const own = { ...settings, name, signal, context: 'default', contextOptions: undefined } as const;
    return openLease({
      pools: [pool],
      connector,
      settings: own,
      features: createFeatures(own, true),
      isOwnContextUsed,
      addedNames: NAMES,
    });
  }

  #count(change: 1 | -1): void {
    this.#open += change;
    this.#lastOpen = clock.now();
    this.#plan.progress.add({ leases: change });
  }

  /** @param failures Number of failures in a row, including this one. */
  #isFatal(error: unknown, failures: number): boolean {
    if (!isTransient(error)) return true;
    if (this.#open > 0) return false;
    if (!(error instanceof AcquireTimeoutError)) return failures >= MAX_FAILURES;
    if (this.#plan.hasOtherJobs) return false;
    // In a pool smaller than the concurrency, other workers had the browsers while this worker waited.
    return clock.now() - this.#lastOpen >= this.#plan.browser.settings.acquireTimeout;
  }
}

/** Whether another browser or a later attempt may succeed. A wrong token or pool stays wrong. */
function isTransient(error: unknown): boolean {
  const types = [AcquireTimeoutError, BrowserLostError, ConnectError];
  return isTransientError(error) || types.some((type) => error instanceof type);
}
