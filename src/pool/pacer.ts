import { raceAbort } from '../shared/abort.js';
import { backoff, clock, delay, type Backoff } from '../shared/clock.js';

/** Longest pause between two requests to a full service, in ms. A random part keeps processes apart. */
const longestPause = () => 1000 * (1 + Math.random());

/** The requests of one call to a service that may be full. */
export interface Turn {
  /** Waits until this call may send its next request. Rejects with the reason of the signal. */
  begin(retry: Backoff, signal: AbortSignal): Promise<void>;
  /** The service refused, because it is full. @param retryAfter Milliseconds that it asked to wait. */
  refused(retryAfter?: number): void;
  /** The call has a browser. */
  served(): void;
  /** The call gives up, or has been served. */
  end(): void;
}

interface Caller {
  /** The order in which the calls began. */
  readonly number: number;
  /** Lets the caller send. */
  call: () => void;
}

/**
 * Paces the requests of this process to a service that refuses at once while it has no browser. After a refusal one caller
 * sends requests, the one that has waited longest, with a backoff; the others wait for it. The second browser in a row that the
 * service leases lets two callers send, the third one four, and so on.
 */
export class Pacer {
  /** Refusals in a row. */
  #refusals = 0;
  #refusedAt = 0;
  /** Milliseconds that the service asked to wait, instead of the backoff. */
  #retryAfter: number | undefined;
  /** Browsers that the service leased since its last refusal. */
  #leased = 0;
  #count = 0;
  readonly #senders = new Set<Caller>();
  readonly #waiting = new Set<Caller>();
  readonly #wakes = new Set<() => void>();
  #wasReleased = false;

  /** The turn of one call: from its first request until it has a browser, or gives up. */
  turn(): Turn {
    const caller: Caller = { number: ++this.#count, call: () => {} };
    return {
      begin: (retry, signal) => this.#begin(caller, retry, signal),
      refused: (retryAfter) => this.#refuse(caller, retryAfter),
      served: () => this.#end(caller, true),
      end: () => this.#end(caller, false),
    };
  }

  /** A browser was released: the sender need not wait longer, and its backoff begins again. */
  noteRelease(): void {
    if (this.#refusals === 0) return;
    this.#refusals = 1;
    const [wake] = this.#wakes;
    if (wake) wake();
    // The request on its way may be older than the release.
    else this.#wasReleased = this.#senders.size > 0;
  }

  async #begin(caller: Caller, retry: Backoff, signal: AbortSignal): Promise<void> {
    if (!this.#senders.has(caller)) {
      if (this.#refusals === 0 && this.#waiting.size === 0) return;
      this.#waiting.add(caller);
      const called = new Promise<void>((resolve) => (caller.call = resolve));
      this.#admit();
      await raceAbort(called, signal).finally(() => this.#waiting.delete(caller));
    }
    if (this.#refusals === 0) return;
    const pause = this.#retryAfter ?? Math.min(backoff(retry, this.#refusals), longestPause());
    const left = pause - (clock.now() - this.#refusedAt);
    const wake = (resolve: () => void) => {
      this.#wakes.add(resolve);
      return () => this.#wakes.delete(resolve);
    };
    if (left > 0) await delay(left, signal, wake);
  }

  #refuse(caller: Caller, retryAfter: number | undefined): void {
    // Requests that were sent before the service was full say nothing new.
    if (this.#refusals > 0 && !this.#senders.has(caller)) return;
    this.#refusals++;
    this.#refusedAt = this.#wasReleased ? Number.NEGATIVE_INFINITY : clock.now();
    this.#wasReleased = false;
    this.#retryAfter = retryAfter;
    this.#leased = 0;
    if (this.#senders.size > 1) this.#senders.delete(caller);
  }

  #end(caller: Caller, isServed: boolean): void {
    this.#waiting.delete(caller);
    const wasSender = this.#senders.delete(caller);
    if (wasSender && isServed) {
      this.#refusals = 0;
      this.#leased++;
    }
    this.#admit();
  }

  #admit(): void {
    // During a pause, further senders would only wait.
    const most = this.#refusals > 0 ? 1 : 2 ** Math.max(0, this.#leased - 1);
    while (this.#waiting.size > 0 && this.#senders.size < most) {
      const next = [...this.#waiting].reduce((first, one) => (one.number < first.number ? one : first));
      this.#waiting.delete(next);
      this.#senders.add(next);
      next.call();
    }
  }
}
