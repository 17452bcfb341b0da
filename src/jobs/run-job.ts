import type { Connector } from '../connect/connector.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { coreOf } from '../pool/pool-core.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { nextTurn } from '../shared/clock.js';
import { TooManyFailuresError } from '../shared/lease-errors.js';
import { withCheckpoint } from './checkpoint.js';
import type { InputSource } from './input-source.js';
import type { MapSettings } from './options.js';
import type { Outcome, TaskCallback } from './outcome.js';
import { OutcomeBuffer } from './outcome-buffer.js';
import { Progress, type MapSummary } from './progress.js';
import { taskContexts } from './task-context.js';
import { TaskQueue } from './task-queue.js';
import { returningData } from './task-value.js';
import { Workers } from './workers.js';

export interface JobPlan<Handles, Input, Value, Session extends object> {
  pool: BrowserPool<Session>;
  connector: Connector<Handles>;
  fn: TaskCallback<Handles, Input, Value, Session>;
  settings: MapSettings;
  source: InputSource<Input>;
}

/** Runs a task for each input of a source. Starts with the request for its first outcome. */
export class Job<Handles, Input, Value, Session extends object> {
  readonly #plan: JobPlan<Handles, Input, Value, Session>;
  readonly #source: InputSource<Input>;
  readonly #progress: Progress;
  readonly #queue: TaskQueue<Input, Value, Session>;
  readonly #workers: Workers<Handles, Input, Value, Session>;
  readonly #buffer: OutcomeBuffer<Outcome<Input, Value, Session>>;
  readonly #loop: AsyncGenerator<Outcome<Input, Value, Session>, undefined, void>;
  /** Aborts when the running tasks must end. */
  readonly #abort = new LinkedAbort();
  #running: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;

  constructor(plan: JobPlan<Handles, Input, Value, Session>) {
    const { pool, connector, settings } = plan;
    const { signal } = this.#abort;
    const { checkpoint, onProgress, ordered, total = plan.source.size } = settings;
    const progress = new Progress(onProgress, total, () => this.#queue.waiting);
    this.#plan = plan;
    this.#progress = progress;
    this.#source = checkpoint
      ? withCheckpoint(plan.source, checkpoint, () => progress.add({ skipped: 1 }))
      : plan.source;
    const fn = checkpoint ? returningData(plan.fn) : plan.fn;
    this.#buffer = new OutcomeBuffer(ordered, () => this.#queue.receive());
    this.#loop = this.#buffer[Symbol.asyncIterator]();
    const job = { settings, progress, signal, deliver: this.#deliver, fail: this.#fail };
    this.#queue = new TaskQueue(this.#source, job);
    this.#workers = new Workers({
      pool,
      connector,
      browser: { fn, settings, contextOf: taskContexts(settings), tasks: this.#queue },
      hasOtherJobs: plan.source.hasOtherJobs ?? false,
      progress,
      signal,
      fail: this.#fail,
    });
  }

  /** Resolves with the next outcome. */
  next(): Promise<IteratorResult<Outcome<Input, Value, Session>, undefined>> {
    this.#running ??= this.#run();
    return this.#loop.next();
  }

  /** Ends the job, and releases every browser. */
  async end(): Promise<void> {
    this.#running ??= Promise.resolve();
    this.#buffer.end();
    void this.#stop(new DOMException('The iteration was ended.', 'AbortError'));
    await Promise.all([this.#running, this.#loop.return(undefined)]);
  }

  /** Runs the job to its end, without its outcomes. Rejects with the error that ended the job, also if the loop has received it. */
  async summary(): Promise<MapSummary> {
    while (!(await this.next()).done);
    if (this.#failure) throw this.#failure.error;
    return this.#progress.summary;
  }

  get counts(): Pick<MapSummary, 'done' | 'failed'> {
    return this.#progress.counts;
  }

  /** Runs the tasks, and then closes everything. Never rejects: the loop receives the error. */
  async #run(): Promise<void> {
    const { pool, settings } = this.#plan;
    const { signal } = settings;
    const stopListening = onAbort(signal, () => this.#fail(signal!.reason));
    const endCall = coreOf(pool).beginCall((error) => {
      // Before the leases abort: a task that was ended with the job has no outcome.
      this.#abort.abort(error);
      this.#fail(error);
    });
    await this.#workers.run().catch(this.#fail);
    stopListening();
    this.#failure ??= this.#queue.failure;
    await this.#source.close().catch((error: unknown) => (this.#failure ??= { error }));
    this.#progress.end();
    endCall();
    this.#buffer.end(this.#failure);
  }

  /** After too many failures, no more tasks start. The running tasks end as usual. */
  readonly #deliver = (position: number, outcome: Outcome<Input, Value, Session>): void => {
    this.#buffer.add(position, outcome);
    const { failed } = this.#progress.counts;
    if (outcome.status === 'fulfilled' || failed < this.#plan.settings.stopAfterFailures) return;
    this.#failure ??= { error: new TooManyFailuresError(failed, { cause: outcome.reason }) };
    this.#queue.close();
  };

  /** Stops the job because of an error. The loop receives the first error. */
  readonly #fail = (error: unknown): void => {
    this.#failure ??= { error };
    void this.#stop(error);
  };

  async #stop(reason: unknown): Promise<void> {
    this.#queue.close();
    // Idle browsers are released for reuse before the abort, which destroys browsers.
    await nextTurn();
    this.#abort.abort(reason);
  }
}
