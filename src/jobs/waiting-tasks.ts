import { clock, startTimer } from '../shared/clock.js';
import type { Task } from './backlog.js';

/** The limits of each host. */
export interface HostLimits {
  readonly hostConcurrency: number;
  /** Between the starts of two tasks, in ms. */
  readonly hostDelay: number;
}

interface Host<Input> {
  /** Undefined for the tasks that concern no host: they have no limits. */
  readonly name: string | undefined;
  readonly waiting: Task<Input>[];
  /** From the time at which a lane takes a task until its attempt has ended. */
  readonly running: Set<Task<Input>>;
  /** The task that a lane has taken, but that has not begun: the next delay begins with it. */
  starting: Task<Input> | undefined;
  /** No task starts before this time of the clock. */
  nextStart: number;
}

/**
 * The tasks that wait, with the limits of their hosts. The first task whose host allows another one comes next, so that a slow
 * host holds back only its own tasks.
 */
export class WaitingTasks<Input> {
  readonly #limits: HostLimits;
  readonly #hosts = new Map<string | undefined, Host<Input>>();
  /** The order in which tasks come next, lowest first. */
  readonly #order = new Map<Task<Input>, number>();
  #first = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: HostLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#order.size;
  }

  /** Number of tasks that may start now. */
  get startable(): number {
    let sum = 0;
    for (const host of this.#hosts.values()) sum += Math.min(host.waiting.length, this.#capacity(host));
    return sum;
  }

  add(task: Task<Input>): void {
    this.#order.set(task, ++this.#last);
    this.#hostOf(task).waiting.push(task);
  }

  /** Adds a task before all others. */
  addFirst(task: Task<Input>): void {
    this.#order.set(task, --this.#first);
    this.#hostOf(task).waiting.unshift(task);
  }

  /** Removes the first task that may start now. Its host counts it as running until `end`. */
  take(): Task<Input> | undefined {
    const isFree = (host: Host<Input>) => this.#capacity(host) > 0;
    const host = this.#minimum(isFree, ({ waiting }) => this.#order.get(waiting[0]!)!);
    const task = host?.waiting.shift();
    if (!host || !task) return undefined;
    this.#order.delete(task);
    host.running.add(task);
    host.starting = task;
    return task;
  }

  /** Removes the last task, if it passes a test. */
  pop(test: (task: Task<Input>) => boolean): Task<Input> | undefined {
    const isAny = () => true;
    const host = this.#minimum(isAny, ({ waiting }) => -this.#order.get(waiting.at(-1)!)!);
    const task = host?.waiting.at(-1);
    if (!task || !test(task)) return undefined;
    this.#order.delete(task);
    return host!.waiting.pop();
  }

  /** The attempt of a task begins. */
  begin(task: Task<Input>): void {
    const host = this.#hostOf(task);
    host.starting = undefined;
    this.#delay(host, this.#limits.hostDelay);
  }

  /** The attempt of a task has ended, or the task goes back. @param pause Milliseconds in which its host gets no task. */
  end(task: Task<Input>, pause = 0): void {
    const host = this.#hostOf(task);
    host.running.delete(task);
    if (host.starting === task) host.starting = undefined;
    this.#delay(host, pause);
  }

  /** Calls a function when a host allows a task that must wait now. Replaces the earlier call. */
  wake(onFree: () => void): void {
    this.stop();
    const now = clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const [name, host] of this.#hosts) {
      const { waiting, running, nextStart } = host;
      if (waiting.length > 0 && nextStart > now) next = Math.min(next, nextStart);
      // A job may concern millions of hosts.
      else if (waiting.length === 0 && running.size === 0 && nextStart <= now) this.#hosts.delete(name);
    }
    if (next < Number.POSITIVE_INFINITY) this.#timer = startTimer(Math.ceil(next - now), onFree);
  }

  stop(): void {
    clock.clearTimeout(this.#timer);
  }

  #hostOf({ host: name }: Task<Input>): Host<Input> {
    let host = this.#hosts.get(name);
    if (!host) {
      host = {
        name,
        waiting: [],
        running: new Set(),
        starting: undefined,
        nextStart: Number.NEGATIVE_INFINITY,
      };
      this.#hosts.set(name, host);
    }
    return host;
  }

  /** Number of tasks of a host that may start now. */
  #capacity({ name, running, starting, nextStart }: Host<Input>): number {
    if (name === undefined) return Number.POSITIVE_INFINITY;
    if (nextStart > clock.now()) return 0;
    const { hostConcurrency, hostDelay } = this.#limits;
    const free = hostConcurrency - running.size;
    if (hostDelay === 0) return free;
    return starting ? 0 : Math.min(1, free);
  }

  #delay(host: Host<Input>, pause: number): void {
    if (pause > 0) host.nextStart = Math.max(host.nextStart, clock.now() + pause);
  }

  /** The host with the lowest value, among those that have a task and pass a test. */
  #minimum(
    test: (host: Host<Input>) => boolean,
    valueOf: (host: Host<Input>) => number,
  ): Host<Input> | undefined {
    let found: Host<Input> | undefined;
    for (const host of this.#hosts.values()) {
      if (host.waiting.length > 0 && test(host) && (!found || valueOf(host) < valueOf(found))) found = host;
    }
    return found;
  }
}
