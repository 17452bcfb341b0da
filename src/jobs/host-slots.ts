import { clock, startTimer } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import type { MapSettings } from './options.js';
import { isOf } from '../shared/globals.js';

interface Host {
  /** Number of tasks that wait. */
  waiting: number;
  /** Number of tasks, from the time at which one is claimed until its outcome is stored, or it is put back. */
  running: number;
  /** A task was claimed, but has not begun: the next delay begins with it. */
  isStarting: boolean;
  /** No task starts before this time of the clock. */
  nextStart: number;
}

/** How many tasks may start for each host. Undefined, instead of the name of a host, stands for tasks without limits. */
export class HostSlots {
  readonly #limits: Pick<MapSettings, 'hostConcurrency' | 'hostDelay'>;
  /** Those that have tasks or a delay. */
  readonly #hosts = new Map<string | undefined, Host>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Pick<MapSettings, 'hostConcurrency' | 'hostDelay'>) {
    this.#limits = limits;
  }

  /** Number of tasks of a host that may start now. */
  capacity(name: string | undefined): number {
    const { hostConcurrency, hostDelay } = this.#limits;
    if (name === undefined) return Number.POSITIVE_INFINITY;
    const { running, isStarting, nextStart } = this.#hosts.get(name) ?? UNUSED;
    if (nextStart > clock.now()) return 0;
    const free = hostConcurrency - running;
    if (hostDelay === 0) return free;
    return isStarting ? 0 : Math.min(1, free);
  }

  /** Number of tasks that may start now. */
  get startable(): number {
    let sum = 0;
    for (const [name, { waiting }] of this.#hosts) sum += Math.min(waiting, this.capacity(name));
    return sum;
  }

  /** @param change 1 for a further task that waits, -1 for one that was returned to its source. */
  wait(name: string | undefined, change: 1 | -1): void {
    this.#of(name).waiting += change;
  }

  /** A task is claimed. */
  claim(name: string | undefined): void {
    const host = this.#of(name);
    host.waiting--;
    host.running++;
    host.isStarting = true;
  }

  /** The attempt of the claimed task begins. */
  begin(name: string | undefined): void {
    const host = this.#of(name);
    host.isStarting = false;
    delayed(host, this.#limits.hostDelay);
  }

  /** The claimed task waits again, without an attempt. */
  unclaim(name: string | undefined): void {
    const host = this.#of(name);
    host.waiting++;
    host.running--;
    host.isStarting = false;
  }

  /** An attempt has ended. @param pause Milliseconds in which the host gets no task. */
  end(name: string | undefined, pause: number): void {
    const host = this.#of(name);
    host.running--;
    delayed(host, pause);
  }

  /** Calls a function when a host allows a task that must wait now. Replaces the earlier call. */
  wake(onFree: () => void): void {
    this.stop();
    const now = clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const [name, { waiting, running, nextStart }] of this.#hosts) {
      if (waiting > 0 && nextStart > now) next = Math.min(next, nextStart);
      // A job may concern millions of hosts.
      else if (waiting === 0 && running === 0 && nextStart <= now) this.#hosts.delete(name);
    }
    if (next < Number.POSITIVE_INFINITY) this.#timer = startTimer(Math.ceil(next - now), onFree);
  }

  stop(): void {
    clock.clearTimeout(this.#timer);
  }

  #of(name: string | undefined): Host {
    const host = this.#hosts.get(name) ?? { ...UNUSED };
    this.#hosts.set(name, host);
    return host;
  }
}

const UNUSED: Readonly<Host> = {
  waiting: 0,
  running: 0,
  isStarting: false,
  nextStart: Number.NEGATIVE_INFINITY,
};

function delayed(host: Host, pause: number): void {
  if (pause > 0) host.nextStart = Math.max(host.nextStart, clock.now() + pause);
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
    const fields = isRecord(input) ? ` (it has ${excerpt(Object.keys(input).join(', '), 200)})` : '';
    const message = `Input ${index} is no URL and has no url${fields}, so its host is not known: name the field with its URL "url", or pass hostOf, which names the host of an input.`;
    throw new InvalidOptionError('hostOf', message);
  };
}

function expectName(name: unknown): string | undefined {
  if (name === undefined || typeof name === 'string') return name;
  throw new InvalidOptionError('hostOf', 'hostOf must return the name of a host, or undefined.');
}

/** The host of a URL, or of an object with a `url`. */
function hostOfUrl(input: unknown): string | undefined {
  const url = isRecord(input) && !isOf(input, 'URL') ? input['url'] : input;
  if (isOf(url, 'URL')) return (url as URL).host || undefined;
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).host || undefined : undefined;
}
