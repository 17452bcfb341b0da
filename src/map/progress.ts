import { callListener } from '../shared/telemetry.js';

/** How far a job is. */
export interface MapProgress {
  /** Inputs with an outcome, those that failed included. */
  done: number;
  /** Those of them that failed. */
  failed: number;
  /** Inputs whose outcome was in the checkpoint. */
  skipped: number;
  /** Attempts that are tried again. */
  retried: number;
  /** Tasks that run now. */
  running: number;
  /** Tasks that were pulled and wait, for a browser or for their next attempt. */
  waiting: number;
  /** Browsers leased now. */
  leases: number;
  /** Tasks done per second, since the job began. */
  rate: number;
  /** Number of inputs, where it is known. */
  total?: number;
  /** Milliseconds left at this rate, where `total` is known and something is done. */
  timeLeft?: number;
}

/** Milliseconds between two reports. */
const INTERVAL = 100;

/** Counts, and tells the caller of it: soon after a change, and not too often. */
export class Progress {
  done = 0;
  failed = 0;
  skipped = 0;
  retried = 0;
  running = 0;
  leases = 0;

  readonly #began = performance.now();
  readonly #listener: ((progress: MapProgress) => void) | undefined;
  readonly #total: number | undefined;
  readonly #waiting: () => number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    listener: ((progress: MapProgress) => void) | undefined,
    facts: { total: number | undefined; waiting: () => number },
  ) {
    this.#listener = listener;
    this.#total = facts.total;
    this.#waiting = facts.waiting;
  }

  /** Something has changed. */
  changed(): void {
    if (!this.#listener) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#tell();
    }, INTERVAL);
  }

  /** The last report. */
  end(): void {
    clearTimeout(this.#timer);
    this.#tell();
  }

  #tell(): void {
    const { done, failed, skipped, retried, running, leases } = this;
    const rate = (done / (performance.now() - this.#began)) * 1000;
    const total = this.#total;
    const progress = {
      done,
      failed,
      skipped,
      retried,
      running,
      waiting: this.#waiting(),
      leases,
      rate,
      ...(total !== undefined && { total }),
      ...(total !== undefined && rate > 0 && { timeLeft: ((total - skipped - done) / rate) * 1000 }),
    };
    callListener(this.#listener, progress, 'onProgress');
  }
}
