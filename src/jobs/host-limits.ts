import { clock, startTimer } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, propertyOf } from '../shared/json.js';
import type { MapSettings } from './options.js';

/** The limits of each host. */
export interface HostLimits {
  readonly hostConcurrency: number;
  /** Between the starts of two tasks, in ms. */
  readonly hostDelay: number;
}

/** A task of a host, or of none. */
interface HostTask {
  readonly host: string | undefined;
}

interface Host<Task> {
  /** Undefined for the tasks that concern no host: they have no limits. */
  readonly name: string | undefined;
  readonly waiting: Task[];
  /** From the time at which a task is claimed until its outcome is stored, or it is put back. */
  readonly running: Set<Task>;
  /** The task that was claimed, but has not begun: the next delay begins with it. */
  starting: Task | undefined;
  /** No task starts before this time of the clock. */
  nextStart: number;
}

/**
 * The tasks that wait, with the limits of their hosts. The first task whose host allows another one comes next, so that a slow
 * host holds back only its own tasks.
 */
export class HostQueue<Task extends HostTask> {
  readonly #limits: HostLimits;
  readonly #hosts = new Map<string | undefined, Host<Task>>();
  /** The order in which tasks come next, lowest first. */
  readonly #order = new Map<Task, number>();
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

  add(task: Task): void {
    this.#order.set(task, ++this.#last);
    this.#hostOf(task).waiting.push(task);
  }

  /** Adds a task before all others. */
  addFirst(task: Task): void {
    this.#order.set(task, --this.#first);
    this.#hostOf(task).waiting.unshift(task);
  }

  /** Removes the first task that may start now. Its host counts it as running until `end`. */
  take(): Task | undefined {
    const isFree = (host: Host<Task>) => this.#capacity(host) > 0;
    const host = this.#minimum(isFree, ({ waiting }) => this.#order.get(waiting[0]!)!);
    const task = host?.waiting.shift();
    if (!host || !task) return undefined;
    this.#order.delete(task);
    host.running.add(task);
    host.starting = task;
    return task;
  }

  /** Removes the last task, if it passes a test. */
  pop(test: (task: Task) => boolean): Task | undefined {
    const isAny = () => true;
    const host = this.#minimum(isAny, ({ waiting }) => -this.#order.get(waiting.at(-1)!)!);
    const task = host?.waiting.at(-1);
    if (!task || !test(task)) return undefined;
    this.#order.delete(task);
    return host!.waiting.pop();
  }

  /** The attempt of a task begins. */
  begin(task: Task): void {
    const host = this.#hostOf(task);
    host.starting = undefined;
    this.#delay(host, this.#limits.hostDelay);
  }

  /** The attempt of a task has ended, or the task goes back. @param pause Milliseconds in which its host gets no task. */
  end(task: Task, pause = 0): void {
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

  #hostOf({ host: name }: Task): Host<Task> {
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
  #capacity({ name, running, starting, nextStart }: Host<Task>): number {
    if (name === undefined) return Number.POSITIVE_INFINITY;
    if (nextStart > clock.now()) return 0;
    const { hostConcurrency, hostDelay } = this.#limits;
    const free = hostConcurrency - running.size;
    if (hostDelay === 0) return free;
    return starting ? 0 : Math.min(1, free);
  }

  #delay(host: Host<Task>, pause: number): void {
    if (pause > 0) host.nextStart = Math.max(host.nextStart, clock.now() + pause);
  }

  /** The host with the lowest value, among those that have a task and pass a test. */
  #minimum(
    test: (host: Host<Task>) => boolean,
    valueOf: (host: Host<Task>) => number,
  ): Host<Task> | undefined {
    let found: Host<Task> | undefined;
    for (const host of this.#hosts.values()) {
      if (host.waiting.length > 0 && test(host) && (!found || valueOf(host) < valueOf(found))) found = host;
    }
    return found;
  }
}

type HostOptions = Pick<MapSettings, 'hostOf' | 'hostConcurrency' | 'hostDelay'>;

/**
 * Returns a function that names the host of an input.
 *
 * @throws The function throws what the caller's `hostOf` throws; `InvalidOptionError` if an input has no host although hosts
 *   have limits, which would be ignored.
 */
export function hostNames({
  hostOf: given,
  hostConcurrency,
  hostDelay,
}: HostOptions): (input: unknown, index: number) => string | undefined {
  if (given) return (input) => expectName(given(input));
  const isLimited = hostDelay > 0 || hostConcurrency < Number.POSITIVE_INFINITY;
  return (input, index) => {
    const host = hostOfUrl(input);
    if (host !== undefined || !isLimited) return host;
    const message = `Input ${index} is no URL and has no url, so its host is not known: pass hostOf, which names the host of an input.`;
    throw new InvalidOptionError('hostOf', message);
  };
}

function expectName(name: unknown): string | undefined {
  if (name === undefined || typeof name === 'string') return name;
  throw new InvalidOptionError('hostOf', 'hostOf must return the name of a host, or undefined.');
}

/** The host of a URL, or of an object with a `url`. */
function hostOfUrl(input: unknown): string | undefined {
  const url = isRecord(input) && !(input instanceof URL) ? input['url'] : input;
  if (url instanceof URL) return url.host || undefined;
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host || undefined : undefined;
}

/** How long the host of a task gets no other task, in ms: an error may have a `retryAfter`. */
export function hostPauseOf(error: unknown): number {
  const pause = propertyOf(error, 'retryAfter');
  return typeof pause === 'number' && pause > 0 ? pause : 0;
}
