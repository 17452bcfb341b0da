import { coreOf } from '../pool/pool-core.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { nextMacrotask } from '../shared/clock.js';
import type { PoolClosedError } from '../shared/service-errors.js';
import type { JobContext, JobPlan } from './job-context.js';
import type { Outcome } from './outcome.js';
import { OutcomeBuffer } from './outcome-buffer.js';
import { Progress, type MapSummary } from './progress.js';
import { TaskQueue } from './task-queue.js';
import { returningData } from './task-value.js';
import { Workers } from './workers.js';

/** Runs a task for each input of a source. Starts with the request for its first outcome. */
export class Job<Handles, Input, Value, Session extends object> {
  readonly #context: JobContext<Handles, Input, Value, Session>;
  readonly #tasks: TaskQueue<Input, Value, Session>;
  readonly #loop: AsyncGenerator<Outcome<Input, Value, Session>, undefined, void>;
  readonly #closed = new LinkedAbort();
  readonly #abort = new LinkedAbort();
  #running: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;

  constructor(plan: JobPlan<Handles, Input, Value, Session>) {
    const { settings, source, fn } = plan;
    const { onProgress, ordered, total = source.size } = settings;
    this.#context = {
      ...plan,
      fn: source.storesJson ? returningData(fn) : fn,
      progress: new Progress(onProgress, total),
      outcomes: new OutcomeBuffer(ordered),
      closed: this.#closed.signal,
      signal: this.#abort.signal,
      close: (error) => {
        this.#failure ??= { error };
        this.#closed.abort(undefined);
      },
      fail: (error) => this.#fail(error),
    };
    this.#loop = this.#context.outcomes[Symbol.asyncIterator]();
    this.#tasks = new TaskQueue(this.#context);
  }

  async next(): Promise<IteratorResult<Outcome<Input, Value, Session>, undefined>> {
    this.#running ??= this.#run();
    const result = await this.#loop.next();
    this.#tasks.dispatch();
    return result;
  }

  /** Ends the job, and releases every browser. */
  async end(): Promise<void> {
    this.#running ??= Promise.resolve();
    this.#context.outcomes.end();
    void this.#stop(new DOMException('The iteration was ended.', 'AbortError'));
    await Promise.all([this.#running, this.#loop.return(undefined)]);
  }

  /** Runs the job to its end, without its outcomes. Rejects with the error that ended the job, also if the loop has received it. */
  async summary(): Promise<MapSummary> {
    while (!(await this.next()).done);
    if (this.#failure) throw this.#failure.error;
    return this.#context.progress.summary;
  }

  get counts(): Pick<MapSummary, 'succeeded' | 'failed'> {
    return this.#context.progress.counts;
  }

  /** Runs the tasks, and then closes everything. Never rejects: the loop receives the error. */
  async #run(): Promise<void> {
    const { pools, settings, source, progress, outcomes } = this.#context;
    const { signal } = settings;
    const stopListening = onAbort(signal, () => this.#fail(signal!.reason));
    const close = (error: PoolClosedError) => {
      // Before the leases abort: a task that was ended with the job has no outcome.
      this.#abort.abort(error);
      this.#fail(error);
    };
    const endCalls = pools.map((pool) => coreOf(pool).beginCall(close));
    await new Workers(this.#context, this.#tasks).run().catch((error: unknown) => this.#fail(error));
    stopListening();
    this.#failure ??= this.#tasks.failure;
    await source.close().catch((error: unknown) => (this.#failure ??= { error }));
    progress.end();
    for (const endCall of endCalls) endCall();
    outcomes.end(this.#failure);
  }

  /** The loop receives the first error. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    void this.#stop(error);
  }

  async #stop(reason: unknown): Promise<void> {
    this.#closed.abort(undefined);
    // Idle browsers are released for reuse before the abort, which destroys browsers.
    await nextMacrotask();
    this.#abort.abort(reason);
  }
}
