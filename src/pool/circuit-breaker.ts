import { backoff, clock, delay, startTimer, type Backoff } from '../shared/clock.js';
import { Semaphore } from '../shared/semaphore.js';

/** A request without an error for this many ms has reached a service that works, and waits for a browser. */
const PROBE_PATIENCE = 12_000;

interface GatedRequest<T> {
  send: () => Promise<T>;
  /** Whether the outcome shows that the service has a problem; then, the ms that it asked to wait. */
  outageIn: (outcome: T) => { readonly retryAfter: number | undefined } | undefined;
  /** The pause between requests during an outage. */
  retry: Backoff;
  signal: AbortSignal;
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

  /** Sends a request: immediately while the service works, otherwise in turn. */
  async run<T>({ send, outageIn, retry, signal }: GatedRequest<T>): Promise<T> {
    const leave = this.#failures > 0 ? await this.#turns.take(1, signal) : () => {};
    const isProbe = this.#failures > 0;
    if (!isProbe) leave();
    let hasWorked = false;
    const works = () => {
      hasWorked = true;
      this.#failures = 0;
      leave();
      this.#turns.admitAll();
    };
    let patience: NodeJS.Timeout | undefined;
    try {
      if (isProbe) await this.#pause(retry, signal);
      patience = startTimer(PROBE_PATIENCE, works);
      const outcome = await send();
      const outage = outageIn(outcome);
      if (!outage) works();
      // Requests that were sent before the outage say nothing new.
      else if (!hasWorked && (isProbe || this.#failures === 0)) this.#fail(outage.retryAfter);
      return outcome;
    } finally {
      clock.clearTimeout(patience);
      leave();
    }
  }

  #fail(retryAfter: number | undefined): void {
    this.#failures++;
    this.#lastFailure = clock.now();
    this.#retryAfter = retryAfter;
  }

  async #pause(retry: Backoff, signal: AbortSignal): Promise<void> {
    const pause = this.#retryAfter ?? backoff(retry, this.#failures);
    const left = pause - (clock.now() - this.#lastFailure);
    if (left > 0) await delay(left, signal);
  }
}
