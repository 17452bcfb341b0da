import type { DownloadedFile } from '../features/files/options.js';
import type { Replay } from '../services/browser-service.js';
import { raceAbort } from '../shared/abort.js';
import { backoff, LONGEST_TIMER } from '../shared/clock.js';
import { TooManyFailuresError } from '../shared/lease-errors.js';
import type { PulledInput } from './input-source.js';
import type { TaskJob } from './job-context.js';
import { mayRetry, pauseOf, type AttemptFacts } from './outcome.js';

export interface AttemptPlace<Session extends object> {
  readonly session: Session;
  readonly sessionId: string;
  /** The recordings that are known when the attempt ends. */
  readonly replays: readonly Replay[];
}

/** What comes after an attempt. */
interface AttemptEnd {
  /** Milliseconds before the task can be claimed again, if it is retried. */
  readonly retryIn?: number;
  /** The input has failed in the end. */
  readonly hasFailed: boolean;
  /** Milliseconds in which the host of the task gets none. */
  readonly hostPause: number;
}

/** One input until it has its outcome. The queue calls `begin` and then `end` for each attempt. */
export class Task<Input, Value, Session extends object> {
  readonly input: Input;
  readonly index: number;
  /** The host that the input concerns, if it has limits. */
  readonly host: string | undefined;
  /** Time of each attempt, in ms. */
  readonly taskTimeout: number;
  /** Paths of the artifacts of all attempts. */
  readonly artifacts: string[] = [];
  /** The files that all attempts downloaded. */
  readonly downloads: DownloadedFile[] = [];
  /** Link to the moment at which the last attempt failed, in a recording of this process. */
  moment: string | undefined;
  /** Number of attempts that were started. */
  attempts: number;

  readonly #pulled: PulledInput<Input>;
  readonly #position: number;
  readonly #job: TaskJob<Input, Value, Session>;

  /** @param position Position among the inputs that are run, without those that are skipped. */
  constructor(
    pulled: PulledInput<Input>,
    place: { readonly position: number; readonly host: string | undefined },
    job: TaskJob<Input, Value, Session>,
  ) {
    this.#pulled = pulled;
    this.#position = place.position;
    this.#job = job;
    this.input = pulled.input;
    this.index = pulled.index;
    this.host = place.host;
    this.attempts = pulled.attempts ?? 0;
    this.taskTimeout = pulled.taskTimeout ?? job.settings.taskTimeout;
  }

  begin(): void {
    this.attempts++;
    this.#job.progress.beginAttempt(this, this.#facts);
  }

  /**
   * An attempt has ended. Resolves after the outcome is stored and delivered, if the task is not retried; to undefined if the
   * job ends. Never rejects.
   */
  async end(
    result: PromiseSettledResult<Value>,
    place: AttemptPlace<Session>,
  ): Promise<AttemptEnd | undefined> {
    const { progress, settings, signal, fail } = this.#job;
    // A task that was ended with the job has no outcome, and has not failed.
    progress.endAttempt(this, this.#facts, signal.aborted ? undefined : result);
    if (signal.aborted) return undefined;
    try {
      // The function of the caller may take long, or never end.
      const isRetried =
        result.status === 'rejected' && (await raceAbort(this.#mayRetry(result.reason), signal));
      const isOver = !isRetried && (await this.#deliver(result, place));
      // Otherwise its source runs the input again, here or elsewhere.
      if (!isOver) progress.add({ retried: 1 });
      const asked = result.status === 'rejected' ? pauseOf(result.reason) : 0;
      const hostPause = asked > LONGEST_TIMER ? 0 : asked;
      const hasFailed = isOver && result.status === 'rejected';
      if (!isRetried) return { hostPause, hasFailed };
      return { hostPause, hasFailed, retryIn: Math.max(backoff(settings.retry, this.attempts), hostPause) };
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) fail(error);
      return undefined;
    }
  }

  /** Gives the input back to its source, for other jobs. Returns false if the source does not take it. */
  returnToSource(): boolean {
    this.#pulled.returnToSource?.();
    return this.#pulled.returnToSource !== undefined;
  }

  /** The attempt that was started last. */
  get #facts(): AttemptFacts {
    return { input: this.input, index: this.index, attempt: this.attempts };
  }

  async #mayRetry(error: unknown): Promise<boolean> {
    const { retries, shouldRetry } = this.#job.settings;
    if (this.attempts > retries || !(await mayRetry(error, this.#facts, shouldRetry))) return false;
    return !this.#job.closed.aborted;
  }

  /** Resolves to false if there is no outcome, because the source runs the input again. */
  async #deliver(result: PromiseSettledResult<Value>, place: AttemptPlace<Session>): Promise<boolean> {
    const { input, index, attempts, artifacts, downloads, moment } = this;
    const { progress, settings, signal, outcomes, close } = this.#job;
    const collected = { artifacts, downloads, ...(moment !== undefined && { moment }) };
    const outcome = { ...result, input, index, attempts, ...place, ...collected };
    if ((await this.#pulled.settle?.(outcome, signal)) === false) return false;
    progress.countOutcome(result.status);
    outcomes.add(this.#position, outcome);
    const { failed } = progress.counts;
    if (result.status === 'rejected' && failed >= settings.stopAfterFailures)
      close(new TooManyFailuresError(failed, { cause: result.reason }));
    return true;
  }
}
