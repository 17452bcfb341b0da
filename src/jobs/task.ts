import type { Download } from '../features/downloads/options.js';
import type { Replay } from '../services/browser-service.js';
import { backoff } from '../shared/clock.js';
import { hostPauseOf } from './host-limits.js';
import type { PulledInput } from './input-source.js';
import { isRetryable, type AttemptFacts, type Outcome } from './outcome.js';
import type { MapSettings } from './options.js';
import type { Progress } from './progress.js';

/** The job of a task: what happens when an attempt has ended. */
export interface TaskJob<Input, Value, Session extends object> {
  readonly settings: MapSettings;
  readonly progress: Progress;
  /** Aborts when the running tasks are ended without an outcome. */
  readonly signal: AbortSignal;
  /** Gives an outcome to the loop. @param position Position among the inputs that are run. */
  readonly deliver: (position: number, outcome: Outcome<Input, Value, Session>) => void;
  /** Ends the job with an error. */
  readonly fail: (error: unknown) => void;
}

/** The queue to which a task belongs. */
interface OwningQueue<Of> {
  /** Whether no more tasks start. */
  readonly isClosed: boolean;
  begin(task: Of): void;
  /** The task had no attempt. */
  putBack(task: Of): void;
  /** @param pause Milliseconds before the task can be claimed again. @param hostPause The same for all tasks of its host. */
  retry(task: Of, pause: number, hostPause: number): void;
  /** @param isDelivered Whether the loop receives an outcome. */
  finish(task: Of, isDelivered: boolean, hostPause: number): void;
}

export interface AttemptPlace<Session extends object> {
  readonly session: Session;
  readonly sessionId: string;
  /** The recordings that are known when the attempt ends. */
  readonly replays: readonly Replay[];
}

/**
 * One input until it has its outcome. Whoever has claimed a task from the queue calls `begin` and then `end` for an attempt,
 * or `putBack` if there is none. After `end` or `putBack`, the task belongs to the queue again.
 */
export class Task<Input, Value, Session extends object> {
  readonly input: Input;
  readonly index: number;
  /** The host that the input concerns, if it has limits. */
  readonly host: string | undefined;
  /** Paths of the artifacts of all attempts. */
  readonly artifacts: string[] = [];
  /** The files that all attempts downloaded. */
  readonly downloads: Download[] = [];
  /** Number of attempts that were started. */
  attempts: number;

  readonly #pulled: PulledInput<Input>;
  readonly #position: number;
  readonly #queue: OwningQueue<Task<Input, Value, Session>>;
  readonly #job: TaskJob<Input, Value, Session>;

  /** @param position Position among the inputs that are run, without those that are skipped. */
  constructor(
    pulled: PulledInput<Input>,
    place: { readonly position: number; readonly host: string | undefined },
    queue: OwningQueue<Task<Input, Value, Session>>,
    job: TaskJob<Input, Value, Session>,
  ) {
    this.#pulled = pulled;
    this.#position = place.position;
    this.#queue = queue;
    this.#job = job;
    this.input = pulled.input;
    this.index = pulled.index;
    this.host = place.host;
    this.attempts = pulled.attempts ?? 0;
  }

  begin(): void {
    this.attempts++;
    this.#queue.begin(this);
    this.#job.progress.beginAttempt(this, this.#facts);
  }

  /** The task can't run here: another page or browser claims it. */
  putBack(): void {
    this.#queue.putBack(this);
  }

  /** An attempt has ended. Retries the task, or stores and delivers its outcome. Never rejects. */
  async end(result: PromiseSettledResult<Value>, place: AttemptPlace<Session>): Promise<void> {
    this.#job.progress.endAttempt(this, this.#facts, result);
    // A task that was ended with the job has no outcome.
    if (this.#job.signal.aborted) return;
    try {
      if (result.status === 'rejected' && (await this.#mayRetry(result.reason))) this.#retry(result.reason);
      else await this.#deliver(result, place);
    } catch (error) {
      this.#job.fail(error);
    }
  }

  /** Gives the input back to its source, for other jobs. Returns false if the source does not take it. */
  handBack(): boolean {
    this.#pulled.handBack?.();
    return this.#pulled.handBack !== undefined;
  }

  /** The attempt that was started last. */
  get #facts(): AttemptFacts {
    return { input: this.input, index: this.index, attempt: this.attempts };
  }

  async #mayRetry(error: unknown): Promise<boolean> {
    const { retries, shouldRetry } = this.#job.settings;
    if (this.attempts > retries || !isRetryable(error)) return false;
    const mayRetry = (await shouldRetry?.(error, this.#facts)) ?? true;
    return mayRetry && !this.#queue.isClosed;
  }

  #retry(reason: unknown): void {
    this.#job.progress.add({ retried: 1 });
    const hostPause = hostPauseOf(reason);
    const pause = Math.max(backoff(this.#job.settings.retry, this.attempts), hostPause);
    this.#queue.retry(this, pause, hostPause);
  }

  async #deliver(result: PromiseSettledResult<Value>, place: AttemptPlace<Session>): Promise<void> {
    const { input, index, attempts, artifacts, downloads } = this;
    const outcome = { ...result, input, index, attempts, ...place, artifacts, downloads };
    const isStored = (await this.#pulled.settle?.(outcome)) ?? true;
    const hostPause = result.status === 'rejected' ? hostPauseOf(result.reason) : 0;
    if (isStored) {
      this.#job.progress.countOutcome(result.status);
      this.#job.deliver(this.#position, outcome);
    } else {
      // The source runs the input again, here or elsewhere.
      this.#job.progress.add({ retried: 1 });
    }
    this.#queue.finish(this, isStored, hostPause);
  }
}
