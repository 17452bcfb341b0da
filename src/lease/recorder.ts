import { callListener, publish, traceStage, type Stage } from '../shared/telemetry.js';
import type { RunEvent, RunStep } from './events.js';
import type { Timings } from './run.js';

let runs = 0;

/** What a run tells while it goes, and remembers of itself: its number, its times, its acquire requests. */
export class Recorder {
  readonly #number = ++runs;
  readonly #began = performance.now();
  readonly #pool: string;
  readonly #listener: ((event: RunEvent) => void) | undefined;
  readonly #stages: Omit<Timings, 'total'> = {};
  /** Things that went wrong while tidying up. */
  readonly cleanupErrors: Error[] = [];
  /** The lease that is under way: which of the call it is, and its session once there is one. */
  lease: { readonly attempt: number; sessionId?: string } = { attempt: 1 };
  /** Acquire requests sent. */
  attempts = 0;
  /** Those of them whose outcome can't be known. */
  unknownOutcomes = 0;

  constructor(pool: string, listener: ((event: RunEvent) => void) | undefined) {
    this.#pool = pool;
    this.#listener = listener;
  }

  get timings(): Timings {
    return { ...this.#stages, total: Math.round(this.#elapsed) };
  }

  readonly tell = (step: RunStep): void => {
    if (step.type === 'acquiring') this.attempts++;
    if (step.type === 'outcome-unknown') this.unknownOutcomes++;
    const event = { ...step, pool: this.#pool, run: this.#number, elapsed: Math.round(this.#elapsed) };
    publish(event);
    callListener(this.#listener, event);
  };

  /**
   * Adds the time that the work takes to its stage, however it ends, and lets it be traced.
   *
   * @param facts What tells this work from others of its stage.
   */
  async time<T>(stage: Stage, work: () => Promise<T>, facts?: { index: number }): Promise<T> {
    const began = performance.now();
    const trace = { pool: this.#pool, run: this.#number, ...this.lease, ...facts };
    try {
      return await traceStage(stage, trace, work, (known) => Object.assign(known, this.lease));
    } finally {
      this.#stages[stage] = Math.round((this.#stages[stage] ?? 0) + performance.now() - began);
    }
  }

  get #elapsed(): number {
    return performance.now() - this.#began;
  }
}
