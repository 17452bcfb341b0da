import { raceAbort } from '../shared/abort.js';
import { backoff, clock, delay, startTimer, type Backoff } from '../shared/clock.js';

/** A request without an error for this many ms has reached a service that works, and waits for a browser. */
const PROBE_PATIENCE = 12_000;

export interface GatedRequest<T> {
  send: () => Promise<T>;
  /** Whether the outcome shows that the service has a problem; then, the ms that it asked to wait. */
  outageIn: (outcome: T) => { readonly retryAfter: number | undefined } | undefined;
  /** The pause between requests during an outage. */
  retry: Backoff;
  signal: AbortSignal;
}

/**
 * Limits the requests to a service during an outage: one caller at a time sends a request, after a pause that grows with
 * each failure, and all others wait for its outcome. Retries of each caller on its own would prolong the outage.
 */
export class OutageGate {
  /** Failures in a row, over all callers. */
  #failures = 0;
  #lastFailure = 0;
  /** Milliseconds that the service asked to wait after its last failure, instead of the backoff. */
  #retryAfter: number | undefined;
  #isProbing = false;
  readonly #waiting = new Set<() => void>();

  /** Sends a request: immediately while the service works, otherwise in turn. */
  async run<T>({ send, outageIn, retry, signal }: GatedRequest<T>): Promise<T> {
    const isProbe = await this.#enter(retry, signal);
    const report = once((outcome: Outcome) => this.#report(outcome, isProbe));
    const patience = startTimer(PROBE_PATIENCE, () => report('works'));
    try {
      const outcome = await send();
      const outage = outageIn(outcome);
      if (outage) this.#retryAfter = outage.retryAfter;
      report(outage ? 'fails' : 'works');
      return outcome;
    } catch (error) {
      // An aborted request says nothing about the service.
      report('unknown');
      throw error;
    } finally {
      clock.clearTimeout(patience);
    }
  }

  /** Waits until the caller may send its request. Resolves to true if it is the only one. */
  async #enter(retry: Backoff, signal: AbortSignal): Promise<boolean> {
    while (this.#isProbing && this.#failures > 0) await this.#wait(signal);
    if (this.#failures === 0) return false;
    this.#isProbing = true;
    try {
      const pause = this.#retryAfter ?? backoff(retry, this.#failures);
      const left = pause - (clock.now() - this.#lastFailure);
      if (left > 0) await delay(left, signal);
      return true;
    } catch (error) {
      this.#report('unknown', true);
      throw error;
    }
  }

  #report(outcome: Outcome, isProbe: boolean): void {
    if (outcome === 'works') this.#failures = 0;
    if (outcome === 'fails' && (isProbe || this.#failures === 0)) {
      this.#failures++;
      this.#lastFailure = clock.now();
    }
    if (isProbe) this.#isProbing = false;
    if (this.#failures === 0) for (const wake of this.#waiting) wake();
    else if (isProbe) this.#waiting.values().next().value?.();
  }

  /** Waits in order of arrival. A caller that leaves when its turn has just come passes the turn on. */
  async #wait(signal: AbortSignal): Promise<void> {
    let isWoken = false;
    let wake!: () => void;
    const woken = new Promise<void>((resolve) => {
      wake = () => {
        isWoken = true;
        this.#waiting.delete(wake);
        resolve();
      };
    });
    this.#waiting.add(wake);
    try {
      await raceAbort(woken, signal);
    } catch (error) {
      this.#waiting.delete(wake);
      if (isWoken && !this.#isProbing) this.#waiting.values().next().value?.();
      throw error;
    }
  }
}

type Outcome = 'works' | 'fails' | 'unknown';

function once<T>(call: (value: T) => void): (value: T) => void {
  let isCalled = false;
  return (value) => {
    if (!isCalled) call(value);
    isCalled = true;
  };
}
