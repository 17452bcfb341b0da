import type { Download } from '../lease/run.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { delay } from '../shared/clock.js';
import type { InputSource, PulledInput } from './input-source.js';
import { WaitingTasks, type HostLimits } from './waiting-tasks.js';

/** One input until it has its outcome. */
export interface Task<Input> extends PulledInput<Input> {
  /** Position among the inputs that are run, without those that are skipped. */
  readonly position: number;
  /** The host that it concerns, if it has limits. */
  readonly host: string | undefined;
  /** Number of attempts that were started. */
  attempts: number;
  /** Paths of the artifacts of all attempts. */
  readonly artifacts: string[];
  /** The files that all attempts downloaded. */
  readonly downloads: Download[];
}

/** The reason to abort a lease for which no task is left. */
export const NOT_NEEDED = new Error('No task is left for this browser.');

/** How inputs become tasks. */
export interface BacklogPlan<Input> extends HostLimits {
  /** Whether an input already has its outcome. */
  readonly isSkipped: (input: Input, index: number) => boolean;
  readonly hostOf: (input: Input, index: number) => string | undefined;
  /** Number of tasks that may be pulled before the loop receives an outcome. */
  readonly room: number;
  /** Whether the loop receives the outcomes in the order of the inputs. */
  readonly ordered: boolean;
}

/** Number of tasks that wait for their host while inputs for other hosts are pulled. Those of a queue are locked for others. */
const MOST_HELD = 1000;
const MOST_HELD_SHARED = 100;

/**
 * The waiting tasks, and the lanes and workers that wait for a task. A lane has a browser; a worker leases one. An
 * input is pulled only while a lane or a worker waits, so that nothing is read ahead. Lanes come first, so that no
 * browser is leased for a task that an idle lane can run.
 */
export class Backlog<Input> {
  /** The error that the inputs threw. */
  failure: { error: unknown } | undefined;

  readonly #source: InputSource<Input>;
  readonly #plan: BacklogPlan<Input>;
  readonly #ready: WaitingTasks<Input>;
  readonly #lanes = new Set<(task: Task<Input> | undefined) => void>();
  readonly #workers = new Map<LinkedAbort, (isNeeded: boolean) => void>();
  /** Leases under way, each for one of the ready tasks. */
  readonly #leasing = new Set<LinkedAbort>();
  readonly #closed = new LinkedAbort(undefined);
  #isPulling = false;
  #isExhausted = false;
  #pulled = 0;
  /** Number of tasks that may still be pulled. */
  #room: number;
  #unfinished = 0;
  /** Number of outcomes that the loop has not received. */
  #undelivered = 0;
  #delayed = 0;

  constructor(source: InputSource<Input>, plan: BacklogPlan<Input>) {
    this.#source = source;
    this.#plan = plan;
    this.#ready = new WaitingTasks(plan);
    this.#room = plan.room;
  }

  /** Number of tasks that wait for a browser, for their host, or for their next attempt. */
  get waiting(): number {
    return this.#ready.length + this.#delayed;
  }

  /** Whether no more tasks start. */
  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Whether another task may still come. */
  get expectsMore(): boolean {
    return !this.#isExhausted || this.waiting > 0;
  }

  /** Resolves with the next task for a lane, or with `undefined` when no task is left or the signal aborts. */
  take(signal: AbortSignal): Promise<Task<Input> | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const answer = (task: Task<Input> | undefined) => {
        this.#lanes.delete(answer);
        stopListening();
        resolve(task);
      };
      const stopListening = onAbort(signal, () => answer(undefined));
      this.#lanes.add(answer);
      this.dispatch();
    });
  }

  /**
   * Resolves with `true` when a worker must lease a browser, or with `false` when all tasks are finished. Until
   * `endReservation`, one ready task counts as served, and `abort` aborts if other browsers have taken all tasks.
   */
  reserve(abort: LinkedAbort): Promise<boolean> {
    return new Promise((resolve) => {
      this.#workers.set(abort, resolve);
      this.dispatch();
    });
  }

  /** Ends a worker's reservation, because its browser takes tasks now or could not be leased. */
  endReservation(abort: LinkedAbort): void {
    this.#leasing.delete(abort);
  }

  /** Adds a task again that must run once more, after a pause in ms. */
  async putBack(task: Task<Input>, pause = 0): Promise<void> {
    this.#ready.end(task);
    this.#delayed++;
    if (pause > 0) await delay(pause, this.#closed.signal).catch(() => {});
    this.#delayed--;
    this.#ready.addFirst(task);
    this.dispatch();
  }

  /** The attempt of a task begins. */
  begin(task: Task<Input>): void {
    this.#ready.begin(task);
    this.dispatch();
  }

  /** The attempt of a task has ended. @param pause Milliseconds in which its host gets no other task. */
  end(task: Task<Input>, pause: number): void {
    this.#ready.end(task, pause);
    this.dispatch();
  }

  /** Allows another input to be pulled, because the loop received an outcome. */
  makeRoom(): void {
    this.#room++;
    this.#undelivered--;
    this.dispatch();
  }

  /** Counts a task that has its outcome. */
  finishTask(): void {
    this.#unfinished--;
    this.#undelivered++;
    this.dispatch();
  }

  /** Hands tasks back to their source for which there is no lane and no lease under way, if the source takes them. */
  handBack(): void {
    while (this.#ready.length > this.#leasing.size) {
      const task = this.#ready.pop(({ handBack }) => handBack !== undefined);
      if (!task) return;
      task.handBack!();
      this.#room++;
      this.#unfinished--;
    }
  }

  /** Starts no more tasks. */
  close(): void {
    this.#closed.abort(undefined);
    this.dispatch();
  }

  /** Assigns ready tasks to waiting lanes and workers, and pulls inputs for those that still wait. */
  dispatch(): void {
    const { isClosed } = this;
    if (!isClosed) this.#assign();
    if (isClosed || (this.#isExhausted && this.waiting === 0)) {
      for (const answer of this.#lanes) answer(undefined);
      for (const abort of this.#leasing) abort.abort(NOT_NEEDED);
    }
    if (isClosed || (this.#isExhausted && this.#unfinished === 0)) {
      for (const answer of this.#workers.values()) answer(false);
      this.#workers.clear();
    }
    if (this.#lanes.size + this.#workers.size > 0) void this.#pull();
    if (isClosed) this.#ready.stop();
    else this.#ready.wake(() => this.dispatch());
  }

  /** The tasks that waited for their host must not fill the memory with outcomes. In order, the next outcome may be theirs. */
  get #isLoopBusy(): boolean {
    return !this.#plan.ordered && this.#undelivered >= this.#plan.room;
  }

  #assign(): void {
    if (this.#isLoopBusy) return;
    for (const answer of this.#lanes) {
      const task = this.#ready.take();
      if (!task) break;
      answer(task);
    }
    for (const [abort, answer] of this.#workers) {
      if (this.#ready.startable <= this.#leasing.size) return;
      this.#workers.delete(abort);
      this.#leasing.add(abort);
      answer(true);
    }
  }

  /** Tasks that wait for their host take no room from others. */
  get #hasRoom(): boolean {
    const held = this.#ready.length - this.#ready.startable;
    const mostHeld = this.#source.isShared ? MOST_HELD_SHARED : MOST_HELD;
    return this.#room + held > 0 && held < mostHeld;
  }

  async #pull(): Promise<void> {
    if (this.#isPulling || this.#isExhausted || !this.#hasRoom || this.isClosed) return;
    this.#isPulling = true;
    try {
      const next = await this.#source.pull();
      if (this.isClosed) return;
      if (!next) this.#isExhausted = true;
      else if (!this.#plan.isSkipped(next.input, next.index)) this.#add(next);
    } catch (error) {
      this.#isExhausted = true;
      this.failure = { error };
    }
    this.#isPulling = false;
    this.dispatch();
  }

  #add(next: PulledInput<Input>): void {
    const host = this.#plan.hostOf(next.input, next.index);
    this.#room--;
    this.#unfinished++;
    this.#ready.add({
      ...next,
      host,
      position: this.#pulled++,
      attempts: next.attempts ?? 0,
      artifacts: [],
      downloads: [],
    });
  }
}
