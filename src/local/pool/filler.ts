import { setTimeout as sleep } from 'node:timers/promises';
import type { Chromium } from '../browser/chromium.js';
import type { StartLimit } from './start-limit.js';

/** What a filler needs from its pool. */
export interface FillerHost {
  readonly size: number;
  /** Percent of `size` per minute; nothing for at once. */
  readonly fillRatePerMinute: number | undefined;
  /** Browsers that there are, idle and leased. */
  readonly present: () => number;
  readonly start: (signal: AbortSignal) => Promise<Chromium>;
  readonly onStarted: (chromium: Chromium) => void;
  readonly onFailed: (error: Error) => void;
}

const FIRST_BACKOFF = 500;
const LONGEST_BACKOFF = 15_000;

/** Starts browsers until a pool is full. */
export class Filler {
  readonly #host: FillerHost;
  readonly #limit: StartLimit;
  readonly #stop = new AbortController();
  readonly #jobs = new Set<Promise<void>>();
  #starting = 0;
  #failures = 0;
  #lastTurn = 0;
  #lastError: Error | undefined;

  constructor(host: FillerHost, limit: StartLimit) {
    this.#host = host;
    this.#limit = limit;
  }

  /** Browsers that are being started, or are next to be. */
  get starting(): number {
    return this.#starting;
  }

  /** Why the last start failed; nothing when it succeeded, or while another is on its way. */
  get failure(): Error | undefined {
    return this.#starting === 0 ? this.#lastError : undefined;
  }

  /** Fills the pool for the first time. */
  fill(): void {
    this.#fill(() => 0);
  }

  /** Replaces what is missing, at the pool's rate. */
  refill(): void {
    this.#fill(() => Math.max(this.#backoff(), this.#waitForTurn()));
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('The local pool is closing.'));
    await Promise.all(this.#jobs);
  }

  #fill(delay: () => number): void {
    while (!this.#stop.signal.aborted && this.#jobs.size + this.#host.present() < this.#host.size) {
      const job: Promise<void> = this.#startOne(delay(), () => this.#jobs.delete(job));
      this.#jobs.add(job);
    }
  }

  async #startOne(delay: number, onEnd: () => void): Promise<void> {
    const { signal } = this.#stop;
    const outcome = await this.#start(delay).catch((error: unknown) => error as Error);
    onEnd();
    if (!(outcome instanceof Error)) {
      this.#failures = 0;
      this.#lastError = undefined;
      this.#host.onStarted(outcome);
    } else if (!signal.aborted) {
      this.#failures++;
      this.#lastError = outcome;
      this.#host.onFailed(outcome);
      this.refill();
    }
  }

  async #start(delay: number): Promise<Chromium> {
    const { signal } = this.#stop;
    if (delay > 0) await sleep(delay, undefined, { signal });
    this.#starting++;
    try {
      return await this.#limit.run(() => this.#host.start(signal));
    } finally {
      this.#starting--;
    }
  }

  /** A broken browser is tried again ever more rarely, so that it does not keep the machine busy. */
  #backoff(): number {
    return this.#failures === 0 ? 0 : Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (this.#failures - 1));
  }

  /** Turns come one interval apart, the first one interval from now. */
  #waitForTurn(): number {
    const { size, fillRatePerMinute } = this.#host;
    if (fillRatePerMinute === undefined) return 0;
    const now = performance.now();
    this.#lastTurn = Math.max(now, this.#lastTurn) + 60_000 / ((size * fillRatePerMinute) / 100);
    return this.#lastTurn - now;
  }
}
