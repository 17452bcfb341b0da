import { backoff, clock, delay, startTimer, type Backoff } from '../shared/clock.js';
import { Semaphore } from '../shared/semaphore.js';

/** A request without an error for this many ms has reached a service that works, and waits for a browser. */
const PROBE_PATIENCE = 12_000;

/** Permits one request. Its holder must call one of the functions after the request. */
interface Permit {
  /** The service works. */
  succeeded(): void;
  /** The service has a problem. @param retryAfter Milliseconds that it asked to wait. */
  failed(retryAfter: number | undefined): void;
  /** The outcome is unknown, because the caller has left. */
  release(): void;
}

/**
 * Limits the requests to a service during an outage: one caller at a time sends a request, after a pause that grows with
 * each failure, and all others wait for its outcome. Retries of each caller on its own would prolong the outage. Each request comes
 * from the next caller, because the last one may itself be what fails; a `Pacer` lets the caller that has waited longest go on.
 */
export class CircuitBreaker {
  /** Failures in a row, over all callers. */
  #failures = 0;
  #lastFailure = 0;
  /** Milliseconds that the service asked to wait after its last failure, instead of the backoff. */
  #retryAfter: number | undefined;
  /** One during an outage. */
  readonly #turns = new Semaphore();

  /** Waits until a request may be sent: at once while the service works, otherwise in turn, after a pause by `retry`. */
  async enter(retry: Backoff, signal: AbortSignal): Promise<Permit> {
    const leave = this.#failures > 0 ? await this.#turns.take(1, signal) : () => {};
    const isProbe = this.#failures > 0;
    if (!isProbe) leave();
    else {
      await this.#pause(retry, signal).catch((error: unknown) => {
        leave();
        throw error;
      });
    }
    let hasWorked = false;
    const patience = startTimer(PROBE_PATIENCE, () => succeeded());
    const release = () => {
      clock.clearTimeout(patience);
      leave();
    };
    const succeeded = () => {
      hasWorked = true;
      this.#failures = 0;
      release();
      this.#turns.admitAll();
    };
    const failed = (retryAfter: number | undefined) => {
      // Requests that were sent before the outage say nothing new.
      if (!hasWorked && (isProbe || this.#failures === 0)) {
        this.#failures++;
        this.#lastFailure = clock.now();
        this.#retryAfter = retryAfter;
      }
      release();
    };
    return { succeeded, failed, release };
  }

  async #pause(retry: Backoff, signal: AbortSignal): Promise<void> {
    const pause = this.#retryAfter ?? backoff(retry, this.#failures);
    const left = pause - (clock.now() - this.#lastFailure);
    if (left > 0) await delay(left, signal);
  }
}
