import {
  AcquireTimeoutError,
  PoolConnectionError,
  PoolResponseError,
  PoolServiceError,
} from '../shared/service-errors.js';
import { BrowserLostError, ConnectError } from '../shared/lease-errors.js';

/** Leases in a row that may come to nothing, for one worker, while no other browser works. */
const MOST_FAILURES = 3;

/** Judges leases that came to nothing: some are to be tried again, and some end the job. */
export class LeaseFailures {
  readonly #acquireTimeout: number;
  #open = 0;
  /** When a browser was last granted or open. */
  #lastOpen = Number.NEGATIVE_INFINITY;

  constructor(acquireTimeout: number) {
    this.#acquireTimeout = acquireTimeout;
  }

  /** A browser was granted, opened (+1) or has ended (-1). */
  onLease(change: 1 | 0 | -1): void {
    this.#open += change;
    this.#lastOpen = performance.now();
  }

  /** @param failures In a row, this one included. */
  isFatal(error: unknown, failures: number): boolean {
    if (!isPassing(error)) return true;
    if (this.#open > 0) return false;
    if (!(error instanceof AcquireTimeoutError)) return failures >= MOST_FAILURES;
    // A pool smaller than the concurrency: others had its browsers while this one waited.
    return performance.now() - this.#lastOpen >= this.#acquireTimeout;
  }
}

/** Another browser, or another moment, may do. A wrong token or a pool that does not exist stays wrong. */
function isPassing(error: unknown): boolean {
  if (error instanceof PoolServiceError) return error.status >= 500 || [408, 409, 429].includes(error.status);
  const passing = [
    AcquireTimeoutError,
    BrowserLostError,
    ConnectError,
    PoolConnectionError,
    PoolResponseError,
  ];
  return passing.some((type) => error instanceof type);
}
