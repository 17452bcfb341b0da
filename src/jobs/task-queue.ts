import { LinkedAbort, onAbort } from '../shared/abort.js';
import { delay } from '../shared/clock.js';
import { HostSlots, hostNames } from './host-slots.js';
import type { PulledInput } from './input-source.js';
import type { TaskJob } from './job-context.js';
import { Task, type AttemptPlace } from './task.js';

/** The reason to abort a lease for which no task is left. */
export const NOT_NEEDED = new Error('No task is left for this browser.');

/** A browser that is leased for a waiting task. The task counts as served until one of the calls. */
export interface Reservation {
  /** Aborts with the job, or if the pages of other browsers have claimed all tasks meanwhile. Its receiver disposes it. */
  readonly abort: LinkedAbort;
  /** The pages of the browser claim tasks now. */
  fulfill(): void;
  /** The browser could not be leased. @param goesBack Whether tasks without a browser go back to their source, if it takes them. */
  cancel(goesBack: boolean): void;
}

/** The facts that a page has of its task. */
export type TaskOfPage<Input, Value, Session extends object> = Pick<
  Task<Input, Value, Session>,
  'input' | 'index' | 'attempts' | 'taskTimeout' | 'artifacts' | 'downloads' | 'moment'
>;

/** A task that a page has claimed: the page calls `begin` and then `end` for one attempt, or `requeue` if there is none. */
export interface ClaimedTask<Input, Value, Session extends object> {
  readonly task: TaskOfPage<Input, Value, Session>;
  begin(): void;
  /**
   * The attempt has ended. Resolves when the task has its outcome or waits for its retry: to whether the input has failed in the end.
   * Never rejects.
   */
  end(result: PromiseSettledResult<Value>, place: AttemptPlace<Session>): Promise<boolean>;
  /** The task can't run there: another page or browser claims it. */
  requeue(): void;
}

/** Number of tasks that wait for their host while inputs for other hosts are pulled. Those of a queue are locked for others. */
const MOST_HELD = 1000;
const MOST_HELD_SHARED = 100;

/**
 * The waiting tasks, and who waits for them: the idle pages of the leased browsers, and the workers that lease browsers. An
 * input is pulled only while one of them waits, so that nothing is read ahead. Idle pages come first, so that no browser is
 * leased for a task that an idle page can run. The first task whose host allows another one comes next, so that a slow host holds
 * back only its own tasks.
 */
export class TaskQueue<Input, Value, Session extends object> {
  /** The error that the source threw. */
  failure: { error: unknown } | undefined;

  readonly #job: TaskJob<Input, Value, Session>;
  readonly #hosts: HostSlots;
  readonly #hostOf: ReturnType<typeof hostNames>;
  /** Number of inputs that may be pulled before the loop receives an outcome: twice as many as tasks run at once. */
  readonly #capacity: number;
  /** In their order. */
  readonly #waiting: Task<Input, Value, Session>[] = [];
  readonly #pages = new Set<(claimed: ClaimedTask<Input, Value, Session> | undefined) => void>();
  readonly #workers = new Set<(reservation: Reservation | undefined) => void>();
  /** Leases under way, each for one of the ready tasks. */
  readonly #leasing = new Set<Reservation>();
  #isPulling = false;
  #isExhausted = false;
  #pulled = 0;
  /** Number of tasks that were pulled and have no outcome. */
  #unfinished = 0;
  #delayed = 0;

  constructor(job: TaskJob<Input, Value, Session>) {
    this.#job = job;
    this.#hosts = new HostSlots(job.settings);
    this.#hostOf = hostNames(job.settings);
    this.#capacity = 2 * job.settings.concurrency * job.settings.pagesPerLease;
    onAbort(job.closed, () => this.dispatch());
  }

  /** Whether another task may still come. */
  get expectsMore(): boolean {
    return !this.#isExhausted || this.#unserved > 0;
  }

  /** Resolves with the next task for an idle page, or with `undefined` when no task is left or the signal aborts. */
  claim(signal: AbortSignal): Promise<ClaimedTask<Input, Value, Session> | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const answer = (claimed: ClaimedTask<Input, Value, Session> | undefined) => {
        this.#pages.delete(answer);
        stopListening();
        resolve(claimed);
      };
      const stopListening = onAbort(signal, () => answer(undefined));
      this.#pages.add(answer);
      this.dispatch();
    });
  }

  /** Resolves when a task needs another browser, or with `undefined` when all tasks are finished. */
  reserve(): Promise<Reservation | undefined> {
    return new Promise((resolve) => {
      this.#workers.add(resolve);
      this.dispatch();
    });
  }

  /**
   * Assigns ready tasks to those that wait for one, and pulls inputs while somebody still waits. Must be called when the loop
   * has received an outcome: another input can be pulled then.
   */
  dispatch(): void {
    const isClosed = this.#job.closed.aborted;
    // Before the tasks are assigned: a host whose delay ends in between would get neither a task nor a timer.
    if (isClosed) this.#hosts.stop();
    else this.#hosts.wake(() => this.dispatch());
    if (!isClosed) this.#assign();
    if (isClosed || !this.expectsMore) {
      for (const answer of this.#pages) answer(undefined);
      for (const { abort } of this.#leasing) abort.abort(NOT_NEEDED);
    }
    if (isClosed || (this.#isExhausted && this.#unfinished === 0)) {
      for (const answer of this.#workers) answer(undefined);
      this.#workers.clear();
    }
    this.#job.progress.waiting = this.#unserved;
    if (this.#pages.size + this.#workers.size > 0) void this.#pull();
  }

  #claimed(task: Task<Input, Value, Session>): ClaimedTask<Input, Value, Session> {
    const { host } = task;
    return {
      task,
      begin: () => {
        task.begin();
        this.#hosts.begin(host);
        this.dispatch();
      },
      end: async (result, place) => {
        const end = await task.end(result, place);
        if (!end) return false;
        this.#hosts.end(host, end.hostPause);
        if (end.retryIn === undefined) this.#unfinished--;
        else this.#retryLater(task, end.retryIn);
        this.dispatch();
        return end.hasFailed;
      },
      requeue: () => {
        this.#hosts.unclaim(host);
        this.#waiting.unshift(task);
        this.dispatch();
      },
    };
  }

  #retryLater(task: Task<Input, Value, Session>, pause: number): void {
    this.#delayed++;
    const add = () => {
      this.#delayed--;
      this.#hosts.wait(task.host, 1);
      this.#waiting.unshift(task);
      this.dispatch();
    };
    void delay(pause, this.#job.closed).then(add, add);
  }

  /** Number of tasks that wait for a browser, for their host, or for their next attempt. */
  get #unserved(): number {
    return this.#waiting.length + this.#delayed;
  }

  /** The tasks that waited for their host must not fill the memory with outcomes. In order, the next outcome may be theirs. */
  get #isLoopBusy(): boolean {
    return !this.#job.settings.ordered && this.#job.outcomes.size >= this.#capacity;
  }

  #assign(): void {
    if (this.#isLoopBusy) return;
    for (const answer of this.#pages) {
      const task = this.#take();
      if (!task) break;
      answer(this.#claimed(task));
    }
    for (const answer of this.#workers) {
      if (this.#hosts.startable <= this.#leasing.size) return;
      this.#workers.delete(answer);
      answer(this.#reservation());
    }
  }

  /** Claims the first task that may start now. */
  #take(): Task<Input, Value, Session> | undefined {
    if (this.#hosts.startable === 0) return undefined;
    const at = this.#waiting.findIndex(({ host }) => this.#hosts.capacity(host) > 0);
    const [task] = this.#waiting.splice(at, 1);
    this.#hosts.claim(task!.host);
    return task;
  }

  #reservation(): Reservation {
    const reservation: Reservation = {
      abort: new LinkedAbort(this.#job.signal),
      // No dispatch before the pages wait: another worker would lease a browser for the task that they claim.
      fulfill: () => void this.#leasing.delete(reservation),
      cancel: (goesBack) => {
        this.#leasing.delete(reservation);
        if (goesBack) this.#returnToSource();
        // Another worker may lease a browser for the task.
        this.dispatch();
      },
    };
    this.#leasing.add(reservation);
    return reservation;
  }

  /** Hands tasks back to their source for which there is no page and no lease under way. */
  #returnToSource(): void {
    while (this.#waiting.length > this.#leasing.size && this.#waiting.at(-1)!.returnToSource()) {
      this.#hosts.wait(this.#waiting.pop()!.host, -1);
      this.#unfinished--;
    }
  }

  /** Tasks that wait for their host use no capacity of others. */
  get #hasCapacity(): boolean {
    const held = this.#waiting.length - this.#hosts.startable;
    const mostHeld = this.#job.source.hasOtherJobs ? MOST_HELD_SHARED : MOST_HELD;
    return this.#unfinished + this.#job.outcomes.size < this.#capacity + held && held < mostHeld;
  }

  async #pull(): Promise<void> {
    if (this.#isPulling || this.#isExhausted || !this.#hasCapacity || this.#job.closed.aborted) return;
    this.#isPulling = true;
    try {
      const next = await this.#job.source.pull();
      if (this.#job.closed.aborted) return;
      if (next === 'skipped') this.#job.progress.add({ skipped: 1 });
      else if (next) this.#add(next);
      else this.#isExhausted = true;
    } catch (error) {
      this.#isExhausted = true;
      this.failure = { error };
    }
    this.#isPulling = false;
    this.dispatch();
  }

  #add(next: PulledInput<Input>): void {
    const host = this.#hostOf(next.input, next.index);
    this.#unfinished++;
    this.#hosts.wait(host, 1);
    this.#waiting.push(new Task(next, { position: this.#pulled++, host }, this.#job));
  }
}
