import { callListener } from '../shared/telemetry.js';

/** The progress of a job. */
export interface MapProgress {
  /** Number of inputs with an outcome, including those that failed. */
  done: number;
  /** Number of inputs that failed. */
  failed: number;
  /** Number of inputs that were skipped because their outcome was in the checkpoint. */
  skipped: number;
  /** Number of retries. */
  retried: number;
  /** Number of tasks that run now. */
  running: number;
  /** Number of tasks that were pulled and wait for a browser or for their next attempt. */
  waiting: number;
  /** Number of browsers that are leased now. */
  leases: number;
  /** Average number of tasks done per second, since the job began. */
  rate: number;
  /** Number of inputs, if it is known. */
  total?: number;
  /** Milliseconds left at this rate, if `total` is known and at least one task is done. */
  timeLeft?: number;
}

/** Minimum time between two reports, in ms. */
const INTERVAL = 100;

type Counts = Pick<MapProgress, 'done' | 'failed' | 'skipped' | 'retried' | 'running' | 'leases'>;

/** Counts what happens in a job and reports it to the caller's listener. */
export class Progress {
  readonly #counts: Counts = { done: 0, failed: 0, skipped: 0, retried: 0, running: 0, leases: 0 };
  readonly #began = performance.now();
  readonly #listener: ((progress: MapProgress) => void) | undefined;
  readonly #total: number | undefined;
  readonly #waiting: () => number;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    listener: ((progress: MapProgress) => void) | undefined,
    total: number | undefined,
    waiting: () => number,
  ) {
    this.#listener = listener;
    this.#total = total;
    this.#waiting = waiting;
  }

  /** Adds to the counts, and schedules a report. */
  add(changes: Partial<Counts>): void {
    for (const [name, change] of Object.entries(changes)) this.#counts[name as keyof Counts] += change;
    if (!this.#listener) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#report();
    }, INTERVAL);
  }

  /** Sends the last report. */
  end(): void {
    clearTimeout(this.#timer);
    this.#report();
  }

  #report(): void {
    const { done, skipped } = this.#counts;
    const rate = (done / (performance.now() - this.#began)) * 1000;
    const total = this.#total;
    const progress = {
      ...this.#counts,
      waiting: this.#waiting(),
      rate,
      ...(total !== undefined && { total }),
      ...(total !== undefined && rate > 0 && { timeLeft: ((total - skipped - done) / rate) * 1000 }),
    };
    callListener(this.#listener, progress, 'onProgress');
  }
}
