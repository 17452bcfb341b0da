import { AcquireTimeoutError } from '../shared/lease-errors.js';

/** Upper bounds of the histogram's buckets, in ms. */
const BOUNDS = [10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000] as const;

/** Time from a call until it had a browser, in ms, as an explicit-bucket histogram. */
export interface WaitHistogram {
  /** Number of calls. */
  readonly count: number;
  /** Sum of their times, in ms. */
  readonly sum: number;
  /** The longest time, in ms. */
  readonly max: number;
  /** Upper bounds of the buckets, each inclusive: 10, 50, 100, 500, 1,000, 5,000, 10,000, 30,000, 60,000, 300,000. */
  readonly bounds: readonly number[];
  /** Number of calls in each bucket; the last one is for times above all bounds. */
  readonly counts: readonly number[];
}

/** Counts of this process for one `BrowserPool` (extension). `describe()` returns the counts of the service. */
export interface PoolStats {
  /** Calls that waited for a browser. A call that leases a second browser, after an unreachable one, counts twice. */
  readonly calls: number;
  /** Calls that are waiting now. */
  readonly waiting: number;
  /** Calls that ended with `AcquireTimeoutError`. */
  readonly timeouts: number;
  /** Acquire requests that are finished, including those of `BrowserPool.acquire`. */
  readonly requests: {
    /** The service leased a browser. */
    readonly granted: number;
    /** No browser became available (204). */
    readonly empty: number;
    /** The service refused, or the request failed without leasing a browser. */
    readonly failed: number;
    /** It is unknown whether the service leased a browser. */
    readonly unknown: number;
    /** Browsers that the pool released itself, because the call was aborted or the response was broken. */
    readonly orphaned: number;
  };
  /** Leases of `withPooledBrowser`, `leaseBrowser` and `attachBrowser`. */
  readonly leases: {
    /** Leases that are not released yet. */
    readonly active: number;
    /** Released for reuse. */
    readonly reused: number;
    /** Released for destruction. */
    readonly destroyed: number;
    /** Left leased on request, or detached. */
    readonly left: number;
    /** Could not be released. */
    readonly failed: number;
    /** It is unknown whether the browser was released. */
    readonly unknown: number;
  };
  /** How long the calls waited for a browser. */
  readonly waits: WaitHistogram;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Counts the calls, requests and leases of a pool. */
export class PoolCounters {
  readonly #calls = { calls: 0, waiting: 0, timeouts: 0 };
  readonly #requests: Mutable<PoolStats['requests']> = {
    granted: 0,
    empty: 0,
    failed: 0,
    unknown: 0,
    orphaned: 0,
  };
  readonly #leases: Mutable<PoolStats['leases']> = {
    active: 0,
    reused: 0,
    destroyed: 0,
    left: 0,
    failed: 0,
    unknown: 0,
  };
  readonly #waits = { count: 0, sum: 0, max: 0 };
  readonly #counts: number[] = Array.from({ length: BOUNDS.length + 1 }, () => 0);

  /** Counts a call that waits for a browser until `wait` settles. */
  async countCall<T>(wait: () => Promise<T>): Promise<T> {
    const began = performance.now();
    this.#calls.calls++;
    this.#calls.waiting++;
    try {
      const granted = await wait();
      this.#addWait(Math.round(performance.now() - began));
      return granted;
    } catch (error) {
      if (error instanceof AcquireTimeoutError) this.#calls.timeouts++;
      throw error;
    } finally {
      this.#calls.waiting--;
    }
  }

  countRequest(outcome: keyof PoolStats['requests']): void {
    this.#requests[outcome]++;
  }

  /** Counts a lease. The returned function counts its end. */
  countLease(): (released: Exclude<keyof PoolStats['leases'], 'active'>) => void {
    this.#leases.active++;
    return (released) => {
      this.#leases.active--;
      this.#leases[released]++;
    };
  }

  snapshot(): PoolStats {
    const waits = { ...this.#waits, bounds: [...BOUNDS], counts: [...this.#counts] };
    return { ...this.#calls, requests: { ...this.#requests }, leases: { ...this.#leases }, waits };
  }

  #addWait(wait: number): void {
    this.#waits.count++;
    this.#waits.sum += wait;
    this.#waits.max = Math.max(this.#waits.max, wait);
    const bucket = BOUNDS.findIndex((bound) => wait <= bound);
    this.#counts[bucket === -1 ? BOUNDS.length : bucket]!++;
  }
}
