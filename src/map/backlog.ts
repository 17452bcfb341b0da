import { setTimeout as sleep } from 'node:timers/promises';
import type { Inputs } from './inputs.js';

/** One input on its way to its outcome. */
export interface Task<Input> {
  readonly input: Input;
  /** Place among all inputs, from 0. */
  readonly index: number;
  /** Place among those that are run: some may have their outcome from an earlier job. */
  readonly position: number;
  /** Attempts begun so far. */
  attempts: number;
}

/**
 * The tasks that wait, and those who wait for one: lanes, which have a browser, and workers, which would lease one.
 * An input is pulled only when somebody waits, so nothing is read ahead; a lane comes first, so no browser is leased
 * for a task that another one is free to do.
 */
export class Backlog<Input> {
  readonly #inputs: Inputs<Input>;
  readonly #isDone: (input: Input) => boolean;
  readonly #mayPull: (pulled: number) => boolean;
  readonly #ready: Task<Input>[] = [];
  readonly #lanes = new Set<(task: Task<Input> | undefined) => void>();
  readonly #workers = new Set<{
    answer: (reservation: Reservation | undefined) => void;
    cancel: () => void;
  }>();
  readonly #reservations = new Set<Reservation>();
  readonly #closed = new AbortController();
  #isPulling = false;
  #exhausted = false;
  #pulled = 0;
  /** Without an outcome yet. */
  #open = 0;
  #delayed = 0;
  /** What the inputs threw. */
  failure: { error: unknown } | undefined;

  constructor(
    inputs: Inputs<Input>,
    options: { isDone: (input: Input) => boolean; mayPull: (pulled: number) => boolean },
  ) {
    this.#inputs = inputs;
    this.#isDone = options.isDone;
    this.#mayPull = options.mayPull;
  }

  /** Tasks that wait for a browser, or for their next attempt. */
  get waiting(): number {
    return this.#ready.length + this.#delayed;
  }

  /** True when another task is known to come, or may. */
  get expectsMore(): boolean {
    return !this.#exhausted || this.waiting > 0;
  }

  /** The next task, for whoever has a browser; `undefined` when there is none to come, or once the signal aborts. */
  take(signal: AbortSignal): Promise<Task<Input> | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const answer = (task: Task<Input> | undefined) => {
        this.#lanes.delete(answer);
        signal.removeEventListener('abort', onAbort);
        resolve(task);
      };
      const onAbort = () => answer(undefined);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#lanes.add(answer);
      this.match();
    });
  }

  /**
   * Resolves when a task waits for which a browser is to be leased, or with `undefined` when all are done. `cancel` is
   * called when others have done it before the reservation's `end`.
   */
  reserve(cancel: () => void): Promise<Reservation | undefined> {
    return new Promise((resolve) => {
      const worker = {
        cancel,
        answer: (reservation: Reservation | undefined) => {
          this.#workers.delete(worker);
          resolve(reservation);
        },
      };
      this.#workers.add(worker);
      this.match();
    });
  }

  /** The task has no outcome yet: it is to be run again, after `delay` ms. */
  async putBack(task: Task<Input>, delay = 0): Promise<void> {
    this.#delayed++;
    if (delay > 0) await sleep(delay, undefined, { signal: this.#closed.signal }).catch(() => {});
    this.#delayed--;
    this.#ready.unshift(task);
    this.match();
  }

  /** The task has its outcome. */
  settle(): void {
    this.#open--;
    this.match();
  }

  /** Nothing is to be begun any more. */
  close(): void {
    this.#closed.abort();
    this.match();
  }

  /** Brings together those who wait, and pulls for those who still do. */
  match(): void {
    const closed = this.#closed.signal.aborted;
    while (!closed && this.#ready.length > 0 && this.#lanes.size > 0) first(this.#lanes)(this.#ready.shift());
    while (!closed && this.#ready.length > this.#reservations.size && this.#workers.size > 0) this.#lease();
    if (closed || (this.#exhausted && this.waiting === 0)) {
      for (const answer of this.#lanes) answer(undefined);
      for (const reservation of this.#reservations) reservation.cancel();
    }
    if (closed || (this.#exhausted && this.#open === 0)) {
      for (const { answer } of this.#workers) answer(undefined);
    }
    if (this.#lanes.size + this.#workers.size > 0) void this.#pull();
  }

  #lease(): void {
    const { answer, cancel } = first(this.#workers);
    const reservation = {
      cancel,
      end: () => void this.#reservations.delete(reservation),
    };
    this.#reservations.add(reservation);
    answer(reservation);
  }

  async #pull(): Promise<void> {
    if (this.#isPulling || this.#exhausted || this.#closed.signal.aborted) return;
    if (!this.#mayPull(this.#pulled)) return;
    this.#isPulling = true;
    try {
      const next = await this.#inputs.pull();
      if (!next) this.#exhausted = true;
      else if (!this.#isDone(next.input)) this.#add(next);
    } catch (error) {
      this.#exhausted = true;
      this.failure = { error };
    }
    this.#isPulling = false;
    this.match();
  }

  #add(next: { index: number; input: Input }): void {
    this.#open++;
    this.#ready.push({ ...next, position: this.#pulled++, attempts: 0 });
  }
}

/** A worker's claim to lease a browser, until it has one. */
export interface Reservation {
  cancel(): void;
  end(): void;
}

function first<T>(waiting: Set<T>): T {
  return waiting.values().next().value!;
}
