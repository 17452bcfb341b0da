import { callListener } from '../shared/telemetry.js';
import type { AttemptFacts } from './outcome.js';
import { clock } from '../shared/clock.js';

/** An attempt that runs now. */
export interface RunningAttempt extends AttemptFacts {
  /** Milliseconds since the attempt began. */
  elapsed: number;
}

/** An attempt that failed. The task may be retried. */
export interface FailedAttempt extends AttemptFacts {
  /** The error of the task, unchanged, `TaskTimeoutError` or `BrowserLostError`. */
  error: unknown;
}

/** The attempts of one host that have ended. */
export interface HostProgress {
  /** Name of the host: see `hostOf`. */
  host: string;
  /** Number of attempts. */
  attempts: number;
  /** How long an attempt took on average, in ms. */
  average: number;
}

/** The progress of a job. */
export interface MapProgress {
  /** Number of inputs whose task succeeded. */
  succeeded: number;
  /** Number of inputs that failed. */
  failed: number;
  /** Number of inputs that were skipped because their outcome was in the checkpoint. */
  skipped: number;
  /** Number of retries. */
  retried: number;
  /** Number of tasks that run now. */
  running: number;
  /** The attempts that run now, the oldest first. */
  attempts: readonly RunningAttempt[];
  /** The latest failed attempt. */
  lastFailure?: FailedAttempt;
  /** Number of tasks that were pulled and wait for a browser, for their host or for their next attempt. */
  waiting: number;
  /** Number of browsers that are leased now. */
  leases: number;
  /** The host whose attempts took longest on average, of the latest 1,000 hosts, if there are several. */
  slowestHost?: HostProgress;
  /** Average number of outcomes per second, since the job began. */
  rate: number;
  /** Number of inputs, if it is known. */
  total?: number;
  /** Milliseconds left at this rate, if `total` is known and there is an outcome. */
  timeLeft?: number;
}

/** What a whole job did. */
export interface MapSummary extends Pick<
  MapProgress,
  'succeeded' | 'failed' | 'skipped' | 'retried' | 'lastFailure'
> {}

/** Minimum and maximum time between two reports, in ms. */
const INTERVAL = 100;
const IDLE_INTERVAL = 1000;

/** Number of hosts whose times are kept. */
const MOST_HOSTS = 1000;

type Counts = Pick<MapProgress, 'succeeded' | 'failed' | 'skipped' | 'retried' | 'leases'>;

/** A task, as a key. */
interface HostTask {
  readonly host: string | undefined;
}

/** Counts what happens in a job and reports it to the caller's listener. */
export class Progress {
  readonly counts: Counts = { succeeded: 0, failed: 0, skipped: 0, retried: 0, leases: 0 };
  readonly #running = new Map<HostTask, { attempt: AttemptFacts; start: number }>();
  readonly #began = clock.now();
  readonly #listener: ((progress: MapProgress) => void) | undefined;
  readonly #total: number | undefined;
  readonly #hosts = new Map<string, HostProgress>();
  waiting = 0;
  lastFailure: FailedAttempt | undefined;
  /** The timer of the next report. */
  #timer: NodeJS.Timeout | undefined;
  /** Whether there is something new to report. */
  #hasChanged = false;

  constructor(listener: ((progress: MapProgress) => void) | undefined, total: number | undefined) {
    this.#listener = listener;
    this.#total = total;
  }

  /** Adds to the counts, and schedules a report. */
  add(changes: Partial<Counts>): void {
    for (const [name, change] of Object.entries(changes)) this.counts[name as keyof Counts] += change;
    if (!this.#listener || this.#hasChanged) return;
    this.#hasChanged = true;
    this.#schedule(INTERVAL);
  }

  countOutcome(status: 'fulfilled' | 'rejected'): void {
    this.add(status === 'fulfilled' ? { succeeded: 1 } : { failed: 1 });
  }

  beginAttempt(task: HostTask, attempt: AttemptFacts): void {
    this.#running.set(task, { attempt, start: clock.now() });
    this.add({});
  }

  /** @param result Undefined if the job has ended the attempt. */
  endAttempt(task: HostTask, attempt: AttemptFacts, result: PromiseSettledResult<unknown> | undefined): void {
    this.#countTime(task);
    this.#running.delete(task);
    if (result?.status === 'rejected') this.lastFailure = { ...attempt, error: result.reason };
    this.add({});
  }

  #countTime(task: HostTask): void {
    const { host } = task;
    const running = this.#running.get(task);
    if (host === undefined || !running) return;
    const { attempts, average } = this.#hosts.get(host) ?? { attempts: 0, average: 0 };
    const total = average * attempts + clock.now() - running.start;
    // As the latest one.
    this.#hosts.delete(host);
    this.#hosts.set(host, { host, attempts: attempts + 1, average: total / (attempts + 1) });
    if (this.#hosts.size > MOST_HOSTS) this.#hosts.delete(this.#hosts.keys().next().value!);
  }

  get summary(): MapSummary {
    const { succeeded, failed, skipped, retried } = this.counts;
    const { lastFailure } = this;
    return { succeeded, failed, skipped, retried, ...(lastFailure && { lastFailure }) };
  }

  get #slowestHost(): HostProgress | undefined {
    if (this.#hosts.size < 2) return undefined;
    let slowest: HostProgress | undefined;
    for (const host of this.#hosts.values()) if (host.average > (slowest?.average ?? -1)) slowest = host;
    return slowest;
  }

  /** Sends the last report. */
  end(): void {
    this.#report();
    clock.clearTimeout(this.#timer);
  }

  #schedule(delay: number): void {
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => this.#report(), delay).unref();
  }

  #report(): void {
    this.#hasChanged = false;
    this.#schedule(IDLE_INTERVAL);
    const { succeeded, failed, skipped } = this.counts;
    const now = clock.now();
    const rate = ((succeeded + failed) / (now - this.#began)) * 1000;
    const total = this.#total;
    // The caller may expect fewer inputs than there are.
    const left = total === undefined ? undefined : Math.max(0, total - skipped - succeeded - failed);
    const running = [...this.#running.values()];
    const slowestHost = this.#slowestHost;
    const progress = {
      ...this.counts,
      running: running.length,
      attempts: running.map(({ attempt, start }) => ({ ...attempt, elapsed: now - start })),
      ...(this.lastFailure && { lastFailure: this.lastFailure }),
      ...(slowestHost && { slowestHost }),
      waiting: this.waiting,
      rate,
      ...(total !== undefined && { total }),
      ...(left !== undefined && rate > 0 && { timeLeft: (left / rate) * 1000 }),
    };
    callListener(this.#listener, progress, 'onProgress');
  }
}
