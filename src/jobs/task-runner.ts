import { inspect } from 'node:util';
import type { Workspace } from '../drivers/connector.js';
import { factsOf } from '../calls/callback.js';
import { inside } from '../calls/nesting.js';
import type { PooledLease } from '../features/create-features.js';
import type { WorkWith } from '../lease/options.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import { InvalidOptionError } from '../shared/errors.js';
import { ConnectError, TaskTimeoutError } from '../shared/lease-errors.js';
import type { JobContext } from './job-context.js';
import { PageSlot } from './page-slot.js';
import { taskContexts, type TaskContext } from './task-context.js';
import type { AttemptPlace } from './task.js';
import type { ClaimedTask, TaskOfPage, TaskQueue } from './task-queue.js';
import { isError } from '../shared/globals.js';

/** How the work in one browser ended. */
export interface BrowserEnd {
  /** Number of attempts that were started there. */
  begun: number;
  /** Why the browser could not be leased, or cannot run another task. */
  error?: unknown;
  /** Resolves when the browser is released. Never rejects. */
  released: Promise<unknown>;
}

interface Attempt<Value> {
  readonly result: PromiseSettledResult<Value>;
  readonly hasTimedOut: boolean;
}

/** Ends one attempt, for the features of a lease. */
type EndTask = Awaited<ReturnType<PooledLease<object>['beginWork']>>;

/**
 * Runs tasks in a leased browser with page slots. A slot runs one task after another; the slots of a browser run at the same time.
 * They claim tasks until the browser is retired (by `tasksPerLease`, `maxLeaseAge`, `idleTimeout` or a failure) or lost, or no
 * task is left.
 */
export class TaskRunner<Handles, Input, Value, Session extends object> {
  readonly #job: JobContext<Handles, Input, Value, Session>;
  readonly #tasks: TaskQueue<Input, Value, Session>;
  readonly #lease: PooledLease<Handles, Session>;
  readonly #abort: LinkedAbort;
  readonly #contextOf: ReturnType<typeof taskContexts>;
  /** Aborts when no other task may start in this browser. */
  readonly #retired: LinkedAbort;
  #begun = 0;
  #running = 0;
  #idle: NodeJS.Timeout | undefined;
  #fault: Error | undefined;

  constructor(
    job: JobContext<Handles, Input, Value, Session>,
    tasks: TaskQueue<Input, Value, Session>,
    lease: PooledLease<Handles, Session>,
    abort: LinkedAbort,
  ) {
    this.#job = job;
    this.#tasks = tasks;
    this.#contextOf = taskContexts(job.settings);
    this.#lease = lease;
    this.#abort = abort;
    this.#retired = new LinkedAbort(lease.context.signal, job.settings.maxLeaseAge);
  }

  /** Resolves when the release of the browser begins. */
  async run(): Promise<BrowserEnd> {
    const { signal } = this.#lease.context;
    const { pagesPerLease } = this.#job.settings;
    this.#countTask(0);
    await Promise.all(Array.from({ length: pagesPerLease }, () => this.#runSlot()));
    clock.clearTimeout(this.#idle);
    this.#retired.dispose();
    // After an abort the browser is destroyed, and the pool replaces it.
    if (this.#fault) this.#abort.abort(this.#fault);
    // The end of the job must not prevent the cleaning of an idle browser.
    else if (!signal.aborted) this.#abort.dispose();
    const error: unknown = signal.reason;
    const released = this.#lease.end({ status: signal.aborted ? 'failed' : 'ok', error });
    await this.#lease.browser.releasing;
    const fault = this.#fault ?? (isError(error) ? error : undefined);
    return { begun: this.#begun, error: fault, released };
  }

  async #runSlot(): Promise<void> {
    const { settings } = this.#job;
    const slot = new PageSlot<Handles>({
      isolation: settings.isolation,
      open: (isolation, contextOptions) => this.#lease.link.openWorkspace(isolation, contextOptions),
      expectsMore: () => !this.#retired.signal.aborted && this.#tasks.expectsMore,
    });
    try {
      for (;;) {
        const claimed = await this.#tasks.claim(this.#retired.signal);
        if (!claimed) break;
        this.#countTask(1);
        await this.#runTask(claimed, slot).finally(() => this.#countTask(-1));
      }
      await raceAbort(slot.end(), this.#lease.context.signal);
    } catch (cause) {
      this.#retire(cause);
    }
  }

  /** Retires the browser when it has had no task for `idleTimeout`. */
  #countTask(change: 1 | 0 | -1): void {
    clock.clearTimeout(this.#idle);
    this.#running += change;
    if (this.#running > 0) return;
    this.#idle = startTimer(this.#job.settings.idleTimeout, () => this.#retired.abort(undefined));
  }

  /** Rejects when the browser failed. */
  async #runTask(claimed: ClaimedTask<Input, Value, Session>, slot: PageSlot<Handles>): Promise<void> {
    const { task } = claimed;
    let taskContext: TaskContext;
    try {
      taskContext = this.#contextOf(task.input, task.index);
    } catch (reason) {
      return this.#refuse(claimed, reason);
    }
    let workspace: Workspace<Handles>;
    let endWork: EndTask;
    try {
      workspace = await raceAbort(slot.workspace(taskContext), this.#lease.context.signal);
      endWork = await this.#beginWork(workspace, task);
    } catch (error) {
      // The options of this task only.
      if (error instanceof InvalidOptionError && typeof this.#job.settings.contextOptions === 'function')
        return this.#refuse(claimed, error);
      claimed.requeue();
      throw error;
    }
    // The browser may have been retired while the page was opened.
    if (this.#retired.signal.aborted) {
      await endWork(undefined);
      return claimed.requeue();
    }
    if (++this.#begun >= this.#job.settings.tasksPerLease) this.#retired.abort(undefined);
    claimed.begin();
    const running = this.#attempt(task, workspace.handles);
    slot.prepare();
    const attempt = await running;
    try {
      await this.#collect(endWork, task, attempt);
    } finally {
      // The outcome does not wait until the page is closed. The job waits for both, also if the browser is lost.
      const ended = claimed.end(attempt.result, this.#placeOf(attempt.result));
      try {
        await this.#clear(slot, attempt);
      } finally {
        if (await ended) this.#lease.features.replays?.countFailure(task);
      }
    }
  }

  /** Ends the attempt of a task whose context can't be opened, in any browser. */
  async #refuse(claimed: ClaimedTask<Input, Value, Session>, reason: unknown): Promise<void> {
    const result = { status: 'rejected', reason } as const;
    claimed.begin();
    if (await claimed.end(result, this.#placeOf(result))) this.#lease.features.replays?.fail(reason);
  }

  #placeOf({ status }: PromiseSettledResult<Value>): AttemptPlace<Session> {
    const { context, features } = this.#lease;
    const { session, sessionId } = context;
    return { session, sessionId, replays: features.replays?.startedIf(status === 'rejected') ?? [] };
  }

  /** Begins to collect what the options ask for. Without isolation, other tasks may use the same context. */
  #beginWork({ handles }: Workspace<Handles>, task: TaskOfPage<Input, Value, Session>): Promise<EndTask> {
    const { isolation, pagesPerLease } = this.#job.settings;
    const scope = isolation === 'none' ? 'page' : 'context';
    return this.#lease.beginWork({
      kind: 'task',
      title: titleOf(task.input),
      handles: handles as object,
      scope,
      attemptOf: task,
      isAmongOthers: pagesPerLease > 1,
    });
  }

  /** Adds what was collected of an attempt to its task. */
  async #collect(
    endWork: EndTask,
    task: TaskOfPage<Input, Value, Session>,
    { result, hasTimedOut }: Attempt<Value>,
  ): Promise<void> {
    const { name } = this.#job.settings;
    const failed = result.status === 'rejected';
    const {
      artifacts = [],
      downloads = [],
      moment,
    } = await endWork({
      name: `${name === undefined ? '' : `${name}-`}task-${task.index}-attempt-${task.attempts}`,
      failed,
      error: failed ? result.reason : undefined,
      isReachable: this.#lease.isReachable,
      isCut: hasTimedOut,
    });
    task.artifacts.push(...artifacts);
    task.downloads.push(...downloads);
    task.moment = moment;
  }

  /** Prepares the slot for its next task. After the last task, the end of the lease closes everything. */
  async #clear(slot: PageSlot<Handles>, { hasTimedOut }: Attempt<Value>): Promise<void> {
    if (this.#retired.signal.aborted) return;
    await raceAbort(slot.clear({ reusable: !hasTimedOut }), this.#lease.context.signal);
  }

  async #attempt(task: TaskOfPage<Input, Value, Session>, handles: Handles): Promise<Attempt<Value>> {
    const { fn } = this.#job;
    const { input, index, attempts: attempt, taskTimeout } = task;
    const facts = factsOf(this.#lease);
    let hasTimedOut = false;
    const call: WorkWith<Handles, Value, Session> = async ({ session, signal: leaseSignal }) => {
      const abort = new LinkedAbort(leaseSignal);
      const { signal } = abort;
      const { sessionId } = this.#lease.context;
      const stopTimer = this.#lease.timers.start(taskTimeout, () => {
        hasTimedOut = !signal.aborted;
        abort.abort(new TaskTimeoutError(taskTimeout, { sessionId }));
      });
      try {
        const work = async () => fn({ ...facts, ...handles, input, index, session, signal, attempt });
        return await raceAbort(work(), signal);
      } finally {
        stopTimer();
        abort.dispose();
      }
    };
    const [result] = await Promise.allSettled([
      this.#lease.runCallback(inside(this.#lease, call), { index }),
    ]);
    return { result, hasTimedOut };
  }

  #retire(cause: unknown): void {
    const { signal, sessionId } = this.#lease.context;
    // If the browser was lost or the caller ended the job, the lease's signal has the reason.
    if (!signal.aborted) {
      const message = `The browser of session ${sessionId} no longer opens or closes pages.`;
      // Refused options end the job, whatever the browser.
      this.#fault ??=
        cause instanceof InvalidOptionError ? cause : new ConnectError(message, { sessionId, cause });
    }
    this.#retired.abort(cause);
  }
}

/** What people call a task: its input. */
function titleOf(input: unknown): string {
  return typeof input === 'string' ? input : inspect(input, { depth: 1, breakLength: Infinity });
}
