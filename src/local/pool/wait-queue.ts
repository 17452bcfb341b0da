import { startTimer } from '../../shared/abort.js';
import type { Lease, LeaseRequest } from './lease.js';

/** An acquire request that waits for a browser. */
export interface Waiter {
  readonly request: LeaseRequest;
  /** By `performance.now()`. */
  readonly since: number;
  /** Answers the request, with a lease or with an error. */
  readonly grant: (lease: Lease) => void;
  readonly refuse: (error: Error) => void;
}

/** First come, first served. A waiter leaves when it is answered, when its time is up, or when its client went away. */
export class WaitQueue {
  readonly #waiters = new Set<Waiter>();

  get length(): number {
    return this.#waiters.size;
  }

  /** Resolves to a lease, or to nothing after that many milliseconds. Rejects when refused or aborted. */
  wait(request: LeaseRequest, milliseconds: number, signal: AbortSignal): Promise<Lease | undefined> {
    return new Promise((resolve, reject) => {
      const leave = (outcome: () => void) => {
        if (!this.#waiters.delete(waiter)) return;
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        outcome();
      };
      const waiter: Waiter = {
        request,
        since: performance.now(),
        grant: (lease) => leave(() => resolve(lease)),
        refuse: (error) => leave(() => reject(error)),
      };
      const onAbort = () => waiter.refuse(signal.reason as Error);
      const timer = startTimer(milliseconds, () => leave(() => resolve(undefined)));
      this.#waiters.add(waiter);
      signal.addEventListener('abort', onAbort);
    });
  }

  /** Who waits longest. */
  get first(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }

  /** All of them, the longest wait first. */
  [Symbol.iterator](): Iterator<Waiter> {
    return this.#waiters.values();
  }

  refuseAll(error: Error): void {
    for (const waiter of this.#waiters) waiter.refuse(error);
  }
}
