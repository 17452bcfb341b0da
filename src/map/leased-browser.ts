import type { Workspace } from '../connect/connector.js';
import { ConnectError, TaskTimeoutError } from '../shared/lease-errors.js';
import { LinkedAbort, raceAbort, startTimer } from '../shared/abort.js';
import type { Callback } from '../lease/callback.js';
import type { Lease } from '../lease/lease.js';
import type { Backlog, Task } from './backlog.js';
import { Lane } from './lane.js';
import type { TaskCallback } from './outcome.js';
import type { MapSettings } from './settings.js';

/** What became of one attempt. */
export type Attempt<Value> = { status: 'fulfilled'; value: Value } | { status: 'rejected'; reason: unknown };

export interface BrowserParts<Handles, Input, Value> {
  lease: Lease<Handles>;
  backlog: Backlog<Input>;
  fn: TaskCallback<Handles, Input, Value>;
  settings: MapSettings;
  /** Ends the lease at once, and its browser with it. */
  abandon: (error: Error) => void;
  onBegin: (task: Task<Input>) => void;
  onEnd: (task: Task<Input>, attempt: Attempt<Value>) => Promise<void>;
}

/** A leased browser at work: its lanes take task after task until it is spent, bad or lost, or there are no more. */
export class LeasedBrowser<Handles, Input, Value> {
  /** Tasks begun. */
  begun = 0;
  /** What made this browser no good for any further task. */
  fault: Error | undefined;

  readonly #parts: BrowserParts<Handles, Input, Value>;
  /** Aborts when no further task may begin here. */
  readonly #retired: LinkedAbort;

  constructor(parts: BrowserParts<Handles, Input, Value>) {
    this.#parts = parts;
    this.#retired = new LinkedAbort(parts.lease.signal, parts.settings.maxLeaseAge);
  }

  /** Resolves when the browser has been given back. */
  async work(): Promise<void> {
    const { lease, settings, abandon } = this.#parts;
    await Promise.all(Array.from({ length: settings.pagesPerLease }, () => this.#runLane()));
    this.#retired.dispose();
    // Given back as bad, the pool replaces it.
    if (this.fault) abandon(this.fault);
    const error: unknown = lease.signal.reason;
    if (error instanceof Error) this.fault ??= error;
    await lease.end({ status: lease.signal.aborted ? 'failed' : 'ok', error });
  }

  async #runLane(): Promise<void> {
    const { lease, settings, backlog } = this.#parts;
    const lane = new Lane<Handles>(settings.isolation, (isolation) => lease.openWorkspace(isolation));
    try {
      for (;;) {
        const task = await backlog.take(this.#retired.signal);
        if (!task) break;
        await this.#runTask(task, lane);
      }
      await raceAbort(lane.end(), lease.signal);
    } catch (cause) {
      this.#retire(cause);
    }
  }

  /** Rejects when it is the browser that failed. */
  async #runTask(task: Task<Input>, lane: Lane<Handles>): Promise<void> {
    const { lease, settings, backlog, onBegin, onEnd } = this.#parts;
    let workspace: Workspace<Handles>;
    try {
      workspace = await raceAbort(lane.workspace(), lease.signal);
    } catch (error) {
      void backlog.putBack(task);
      throw error;
    }
    // Others have begun meanwhile, or the browser's time is up.
    if (this.#retired.signal.aborted) return backlog.putBack(task);
    if (++this.begun >= settings.tasksPerLease) this.#retired.abort(undefined);
    onBegin(task);
    const running = this.#attempt(task, workspace.handles);
    if (!this.#retired.signal.aborted && backlog.expectsMore) lane.prepare();
    const attempt = await running;
    // The outcome need not wait for the page.
    await Promise.all([onEnd(task, attempt), this.#clear(lane, attempt)]);
  }

  /** Makes the lane ready for the next task. After the last one, the lease's sweep does it all. */
  async #clear(lane: Lane<Handles>, attempt: Attempt<Value>): Promise<void> {
    if (this.#retired.signal.aborted) return;
    const timedOut = attempt.status === 'rejected' && attempt.reason instanceof TaskTimeoutError;
    await raceAbort(lane.clear({ reusable: !timedOut }), this.#parts.lease.signal);
  }

  async #attempt(task: Task<Input>, handles: Handles): Promise<Attempt<Value>> {
    const { lease } = this.#parts;
    const { input, index, attempts: attempt } = task;
    try {
      const run: Callback<Handles, Value> = ({ session, signal }) =>
        this.#withLimit(signal, (limited) =>
          this.#parts.fn({ ...handles, input, index, session, signal: limited, attempt }),
        );
      const value = await lease.call(run, { index });
      return { status: 'fulfilled', value };
    } catch (reason) {
      return { status: 'rejected', reason };
    }
  }

  async #withLimit(
    signal: AbortSignal,
    work: (signal: AbortSignal) => Value | PromiseLike<Value>,
  ): Promise<Value> {
    const { taskTimeout } = this.#parts.settings;
    const abort = new LinkedAbort(signal);
    const { session_id: sessionId } = this.#parts.lease.session;
    const timer = startTimer(taskTimeout, () =>
      abort.abort(new TaskTimeoutError(taskTimeout, { sessionId })),
    );
    try {
      return await raceAbort((async () => work(abort.signal))(), abort.signal);
    } finally {
      clearTimeout(timer);
      abort.dispose();
    }
  }

  #retire(cause: unknown): void {
    const { lease } = this.#parts;
    // Lost, or ended by the caller: the lease knows why.
    if (!lease.signal.aborted) {
      const { session_id: sessionId } = lease.session;
      const message = `The browser of session ${sessionId} no longer opens or closes pages.`;
      this.fault ??= new ConnectError(message, { sessionId, cause });
    }
    this.#retired.abort(cause);
  }
}
