import { AcquireTimeoutError } from '../shared/service-errors.js';

/** Upper bounds of the buckets that waits are counted in, in ms. */
const BOUNDS = [10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000] as const;

/** How long calls waited for the browser that they got, in ms, as an explicit-bucket histogram. */
export interface WaitHistogram {
  readonly count: number;
  readonly sum: number;
  readonly max: number;
  /** Upper bounds of the buckets, each inclusive: 10, 50, 100, 500, 1,000, 5,000, 10,000, 30,000, 60,000, 300,000. */
  readonly bounds: readonly number[];
  /** Waits in each bucket, and at last those above all bounds: one more than there are bounds. */
  readonly counts: readonly number[];
}

/**
 * What this process has done with a pool since the `BrowserPool` was made (beyond the given interface; the service's
 * own counts are in `describe()`). Plain numbers, a copy of the moment.
 */
export interface PoolStats {
  /** Calls for a browser: each ends in a lease or in an error. One that leases again, as after a bad browser, is two. */
  readonly calls: number;
  /** Calls that wait now. */
  readonly waiting: number;
  /** Calls that ended with `AcquireTimeoutError`. */
  readonly timeouts: number;
  /** Acquire requests that have been answered or have failed, `BrowserPool.acquire` included. */
  readonly requests: {
    /** Answered with a browser. */
    readonly granted: number;
    /** Answered with none (204). */
    readonly empty: number;
    /** Refused by the service, or failed without leasing anything. */
    readonly failed: number;
    /** It can't be known whether they leased a browser. */
    readonly unknown: number;
    /** Of the granted, and of broken answers: browsers that nobody took, given back behind the scenes. */
    readonly orphaned: number;
  };
  /** Leases of `withPooledBrowser`, `leaseBrowser` and `attachBrowser`. */
  readonly leases: {
    /** Held now, until they are given back. */
    readonly active: number;
    readonly reused: number;
    readonly destroyed: number;
    /** Left leased, as asked for, or detached. */
    readonly left: number;
    /** Could not be given back. */
    readonly failed: number;
  };
  readonly waits: WaitHistogram;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Counts what becomes of a pool's calls, requests and leases. */
export class PoolCounters {
  readonly #calls = { calls: 0, waiting: 0, timeouts: 0 };
  readonly #requests: Mutable<PoolStats['requests']> = {
    granted: 0,
    empty: 0,
    failed: 0,
    unknown: 0,
    orphaned: 0,
  };
  readonly #leases: Mutable<PoolStats['leases']> = { active: 0, reused: 0, destroyed: 0, left: 0, failed: 0 };
  readonly #waits = { count: 0, sum: 0, max: 0 };
  readonly #counts: number[] = Array.from({ length: BOUNDS.length + 1 }, () => 0);

  /** Counts a call that waits for a browser while `wait` does. */
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

  /** Counts a lease; the returned function says what became of it. */
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

const counters = new WeakMap<object, PoolCounters>();

/** The counters of a pool, for everyone who has something to count. */
export function countersOf(pool: object): PoolCounters {
  const known = counters.get(pool) ?? new PoolCounters();
  counters.set(pool, known);
  return known;
}
