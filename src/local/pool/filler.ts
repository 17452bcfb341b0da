import { delay as sleep } from '../../shared/clock.js';
import type { Semaphore } from '../../shared/semaphore.js';
import type { CheckedSettings } from '../settings.js';
import type { ServedBrowser } from './served-lease.js';
import { createAbort, isError } from '../../shared/globals.js';

/** The part of a pool that its filler uses. */
interface FillerHost {
  readonly settings: Pick<CheckedSettings, 'size' | 'fillRatePerMinute'>;
  /** Limits the starts of all pools. */
  readonly limit: Semaphore;
  /** Counts the browsers that the pool should have now, without those it has. */
  readonly missing: () => number;
  readonly start: (signal: AbortSignal) => Promise<ServedBrowser>;
  readonly onStarted: (started: ServedBrowser) => void;
  readonly onFailed: (error: Error) => void;
}

/** Browsers that start at the same time slow each other down. */
const MOST_STARTS = 2;
/** Delays after failed starts, in ms. */
const FIRST_BACKOFF = 500;
const LONGEST_BACKOFF = 15_000;

/** Starts browsers until the pool is full. */
export class Filler {
  readonly #host: FillerHost;
  readonly #stop = createAbort();
  readonly #jobs = new Set<Promise<ServedBrowser | Error>>();
  #starting = 0;
  #failures = 0;
  #lastStart = 0;
  #lastError: Error | undefined;

  constructor(host: FillerHost) {
    this.#host = host;
  }

  /** Number of browsers that start now or wait for the start limit. */
  get starting(): number {
    return this.#starting;
  }

  /** The error of the last start. Undefined while another browser starts. */
  get failure(): Error | undefined {
    return this.#starting === 0 ? this.#lastError : undefined;
  }

  /** Fills the pool for the first time. Resolves with the first browser; rejects when the first start fails. */
  async fill(): Promise<void> {
    this.#fill(() => 0);
    const outcome = await Promise.race(this.#jobs);
    if (isError(outcome)) throw outcome;
  }

  /** Replaces the missing browsers, at the pool's fill rate. */
  refill(): void {
    this.#fill(() => Math.max(this.#backoff(), this.#delayUntilNextStart()));
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('The local pool is closing.'));
    await Promise.all(this.#jobs);
  }

  #fill(delay: () => number): void {
    while (!this.#stop.signal.aborted && this.#jobs.size < this.#host.missing()) {
      const job: Promise<ServedBrowser | Error> = this.#startOne(delay(), () => this.#jobs.delete(job));
      this.#jobs.add(job);
    }
  }

  async #startOne(delay: number, onEnd: () => void): Promise<ServedBrowser | Error> {
    const outcome = await this.#start(delay).catch((error: unknown) => error as Error);
    onEnd();
    if (!isError(outcome)) {
      this.#failures = 0;
      this.#lastError = undefined;
      this.#host.onStarted(outcome);
    } else if (!this.#stop.signal.aborted) {
      this.#failures++;
      this.#lastError = outcome;
      this.#host.onFailed(outcome);
      this.refill();
    }
    return outcome;
  }

  async #start(delay: number): Promise<ServedBrowser> {
    const { signal } = this.#stop;
    if (delay > 0) await sleep(delay, signal);
    this.#starting++;
    const leave = await this.#host.limit.take(MOST_STARTS);
    try {
      return await this.#host.start(signal);
    } finally {
      leave();
      this.#starting--;
    }
  }

  /** Repeated starts of a broken browser must not keep the machine busy. */
  #backoff(): number {
    return this.#failures === 0 ? 0 : Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (this.#failures - 1));
  }

  /** Consecutive starts are one interval apart. The first start is one interval from now. */
  #delayUntilNextStart(): number {
    const { size, fillRatePerMinute } = this.#host.settings;
    if (fillRatePerMinute === undefined) return 0;
    const now = performance.now();
    this.#lastStart = Math.max(now, this.#lastStart) + 60_000 / ((size * fillRatePerMinute) / 100);
    return this.#lastStart - now;
  }
}
