import type { Connector } from '../connect/connector.js';
import type { Lease } from '../lease/lease.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { beginCall } from '../pool/open-calls.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { TooManyFailuresError } from '../shared/lease-errors.js';
import { backoff, nextTurn } from '../shared/clock.js';
import { Backlog, type Task } from './backlog.js';
import type { Checkpoint } from './checkpoint.js';
import { hostNames, retryAfterOf } from './host-of.js';
import type { InputSource } from './input-source.js';
import type { MapSummary } from './map-pooled-browsers.js';
import type { MapSettings } from './options.js';
import { isRetryable, type Outcome, type TaskCallback } from './outcome.js';
import { factsOf, Progress } from './progress.js';
import { taskContexts, type TaskContext } from './task-context.js';

/** The parts of a job. */
export interface JobPlan<Handles, Input, Value> {
  pool: BrowserPool<object>;
  connector: Connector<Handles>;
  fn: TaskCallback<Handles, Input, Value, object>;
  settings: MapSettings;
  source: InputSource<Input>;
}

/** The state of one job: its tasks, its outcomes, and whether it was stopped. The workers and lanes share it. */
export class Job<Handles, Input, Value> {
  readonly plan: JobPlan<Handles, Input, Value>;
  readonly backlog: Backlog<Input>;
  readonly progress: Progress;
  /** Throws what the caller's function throws. */
  readonly contextOf: (input: Input, index: number) => TaskContext;

  /** The outcomes that the loop has not received yet, by position. */
  readonly #outcomes = new Map<number, Outcome<Input, Value, object>>();
  readonly #abort = new LinkedAbort();
  #checkpoint: Checkpoint | undefined;
  #delivered = 0;
  /** Number of inputs that failed. */
  #failures = 0;
  #isOver = false;
  #failure: { error: unknown } | undefined;
  #wakeLoop = () => {};

  constructor(plan: JobPlan<Handles, Input, Value>) {
    const { settings } = plan;
    const { concurrency, pagesPerLease, onProgress, total = plan.source.size } = settings;
    const { hostConcurrency, hostDelay } = settings;
    // Inputs wait while the loop has as many outcomes to receive as tasks run at once.
    const room = 2 * concurrency * pagesPerLease;
    this.plan = plan;
    this.contextOf = taskContexts(plan.settings);
    this.backlog = new Backlog(plan.source, {
      isSkipped: (input, index) => this.#isStored(input, index),
      hostOf: hostNames(settings),
      room,
      ordered: settings.ordered,
      hostConcurrency,
      hostDelay,
    });
    this.progress = new Progress(onProgress, total, () => this.backlog.waiting);
  }

  /** Aborts when the running tasks must end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Runs the workers, with an open checkpoint, and then closes everything. Never rejects: the loop receives the error. */
  async run(work: () => Promise<void>): Promise<void> {
    const { source, settings } = this.plan;
    const { signal, checkpoint } = settings;
    const stopListening = onAbort(signal, () => this.fail(signal!.reason));
    const endCall = beginCall(this.plan.pool, (error) => {
      // Before the leases abort: a task that was ended with the job has no outcome.
      this.#abort.abort(error);
      this.fail(error);
    });
    try {
      if (checkpoint !== undefined)
        this.#checkpoint = await (await import('./checkpoint.js')).openCheckpoint(checkpoint);
      await work();
    } catch (error) {
      this.fail(error);
    }
    stopListening();
    this.#failure ??= this.backlog.failure;
    await source.close();
    await this.#checkpoint?.close().catch((error: unknown) => (this.#failure ??= { error }));
    this.progress.end();
    endCall();
    this.#endLoop();
  }

  /** Yields the outcomes as they come, or in the order of the inputs; then throws the error that ended the job. */
  async *outcomes(): AsyncGenerator<Outcome<Input, Value, object>, undefined, void> {
    for (;;) {
      const position = this.#nextPosition();
      const outcome = this.#outcomes.get(position);
      if (outcome) {
        this.#outcomes.delete(position);
        this.#delivered++;
        this.backlog.makeRoom();
        yield outcome;
      } else if (!this.#isOver) await new Promise<void>((resolve) => (this.#wakeLoop = resolve));
      else if (this.#failure) throw this.#failure.error;
      else return undefined;
    }
  }

  /** After the end of a job, the order of the inputs has gaps: tasks without an outcome. */
  #nextPosition(): number {
    if (!this.plan.settings.ordered) return this.#outcomes.keys().next().value ?? 0;
    if (!this.#isOver || this.#outcomes.has(this.#delivered)) return this.#delivered;
    return Math.min(...this.#outcomes.keys());
  }

  /** What the job did. Throws the error that ended it, also if the loop has received the error before. */
  get summary(): MapSummary {
    if (this.#failure) throw this.#failure.error;
    const { done, failed, skipped, retried } = this.progress.counts;
    const { lastFailure } = this.progress;
    return { done, failed, skipped, retried, ...(lastFailure && { lastFailure }) };
  }

  /** Stops the job because the loop was left. */
  leave(): void {
    this.#endLoop();
    void this.#stop(new DOMException('The iteration was ended.', 'AbortError'));
  }

  /** Stops the job because of an error. The loop receives the first error. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    void this.#stop(error);
  }

  /** Counts an attempt that starts now. */
  beginAttempt(task: Task<Input>): void {
    task.attempts++;
    this.backlog.begin(task);
    this.progress.beginAttempt(task);
  }

  /** Retries the task of a failed attempt, or stores and delivers its outcome. */
  async endAttempt(
    task: Task<Input>,
    attempt: PromiseSettledResult<Value>,
    lease: Lease<Handles>,
  ): Promise<void> {
    this.progress.endAttempt(task, attempt);
    this.backlog.end(task, attempt.status === 'rejected' ? retryAfterOf(attempt.reason) : 0);
    // A task that was ended with the job has no outcome.
    if (this.signal.aborted) return;
    try {
      if (attempt.status === 'rejected' && (await this.#mayRetry(task, attempt.reason)))
        this.#retry(task, attempt.reason);
      else await this.#deliver(task, attempt, lease);
    } catch (error) {
      this.fail(error);
    }
  }

  async #mayRetry(task: Task<Input>, error: unknown): Promise<boolean> {
    const { retries, shouldRetry } = this.plan.settings;
    if (task.attempts > retries || !isRetryable(error)) return false;
    const mayRetry = (await shouldRetry?.(error, factsOf(task))) ?? true;
    return mayRetry && !this.backlog.isClosed;
  }

  #retry(task: Task<Input>, reason: unknown): void {
    this.progress.add({ retried: 1 });
    const pause = backoff(this.plan.settings.retry, task.attempts);
    void this.backlog.putBack(task, Math.max(pause, retryAfterOf(reason)));
  }

  async #deliver(
    { position, index, input, attempts, artifacts, downloads, settle }: Task<Input>,
    attempt: PromiseSettledResult<Value>,
    { session, sessionId, replays: made }: Lease<Handles>,
  ): Promise<void> {
    const results = { replays: made?.started ?? [], artifacts, downloads };
    const outcome = { ...attempt, index, input, session, sessionId, attempts, ...results };
    if (settle && !(await settle(outcome))) return this.#leaveToSource();
    await this.#checkpoint?.write(outcome);
    this.progress.add({ done: 1, failed: attempt.status === 'rejected' ? 1 : 0 });
    if (attempt.status === 'rejected') this.#countFailure(attempt.reason);
    this.#outcomes.set(position, outcome);
    this.#wakeLoop();
    this.backlog.finishTask();
  }

  /** Counts an input that its source runs again, here or elsewhere. */
  #leaveToSource(): void {
    this.progress.add({ retried: 1 });
    this.backlog.makeRoom();
    this.backlog.finishTask();
  }

  /** Starts no more tasks after too many failures. The running tasks end as usual. */
  #countFailure(cause: unknown): void {
    if (++this.#failures < this.plan.settings.stopAfterFailures) return;
    this.#failure ??= { error: new TooManyFailuresError(this.#failures, { cause }) };
    this.backlog.close();
  }

  #isStored(input: Input, index: number): boolean {
    const isStored = this.#checkpoint?.has(input, index) ?? false;
    if (isStored) this.progress.add({ skipped: 1 });
    return isStored;
  }

  #endLoop(): void {
    this.#isOver = true;
    this.#wakeLoop();
  }

  async #stop(reason: unknown): Promise<void> {
    this.backlog.close();
    // Idle browsers are released for reuse before the abort, which destroys browsers.
    await nextTurn();
    this.#abort.abort(reason);
  }
}
