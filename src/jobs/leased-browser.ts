import type { Workspace } from '../connect/connector.js';
import type { DownloadPage } from '../connect/downloads.js';
import type { ArtifactCollector } from '../features/artifacts/artifacts.js';
import type { Callback, Lease } from '../lease/lease.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import { InvalidOptionError, isPooledBrowserError } from '../shared/errors.js';
import { ConnectError, TaskTimeoutError } from '../shared/lease-errors.js';
import type { Task } from './backlog.js';
import type { Job } from './job.js';
import { Lane } from './lane.js';
import type { TaskContext } from './task-context.js';

/** How the work in one browser ended. */
export interface BrowserEnd {
  /** Number of attempts that were started there. */
  begun: number;
  /** Why the browser could not be leased, or cannot run another task. */
  error?: unknown;
  /** Resolves when the browser is released. Never rejects. */
  released: Promise<unknown>;
}

/**
 * A leased browser with its lanes. A lane runs one task after another, in one page; the lanes of a browser run at the
 * same time. They take tasks until the browser is retired (by `tasksPerLease`, `maxLeaseAge` or a failure) or lost, or
 * no task is left.
 */
export class LeasedBrowser<Handles, Input, Value> {
  readonly #job: Job<Handles, Input, Value>;
  readonly #lease: Lease<Handles>;
  /** Aborts the lease. */
  readonly #abort: LinkedAbort;
  /** Aborts when no other task may start in this browser. */
  readonly #retired: LinkedAbort;
  #begun = 0;
  #running = 0;
  #idle: NodeJS.Timeout | undefined;
  #fault: Error | undefined;

  constructor(job: Job<Handles, Input, Value>, lease: Lease<Handles>, abort: LinkedAbort) {
    this.#job = job;
    this.#lease = lease;
    this.#abort = abort;
    this.#retired = new LinkedAbort(lease.signal, job.plan.settings.maxLeaseAge);
  }

  /** Resolves when the release of the browser begins. */
  async work(): Promise<BrowserEnd> {
    const { signal } = this.#lease;
    const { pagesPerLease } = this.#job.plan.settings;
    this.#countTask(0);
    await Promise.all(Array.from({ length: pagesPerLease }, () => this.#runLane()));
    clock.clearTimeout(this.#idle);
    this.#retired.dispose();
    // After an abort the browser is destroyed, and the pool replaces it.
    if (this.#fault) this.#abort.abort(this.#fault);
    // The end of the job must not prevent the cleaning of an idle browser.
    else if (!signal.aborted) this.#abort.dispose();
    const error: unknown = signal.reason;
    const released = this.#lease.end({ status: signal.aborted ? 'failed' : 'ok', error });
    await this.#lease.disconnected;
    const fault = this.#fault ?? (error instanceof Error ? error : undefined);
    return { begun: this.#begun, error: fault, released };
  }

  async #runLane(): Promise<void> {
    const { signal } = this.#lease;
    const { plan, backlog } = this.#job;
    const expectsMore = () => !this.#retired.signal.aborted && backlog.expectsMore;
    const lane = new Lane(this.#lease, plan.settings.isolation, expectsMore);
    try {
      for (;;) {
        const task = await backlog.take(this.#retired.signal);
        if (!task) break;
        this.#countTask(1);
        await this.#runTask(task, lane).finally(() => this.#countTask(-1));
      }
      await raceAbort(lane.end(), signal);
    } catch (cause) {
      this.#retire(cause);
    }
  }

  /** Retires the browser when it has had no task for `idleTimeout`. */
  #countTask(change: 1 | 0 | -1): void {
    clock.clearTimeout(this.#idle);
    this.#running += change;
    if (this.#running > 0) return;
    const { idleTimeout } = this.#job.plan.settings;
    this.#idle = startTimer(idleTimeout, () => this.#retired.abort(undefined));
  }

  /** Rejects when the browser failed. */
  async #runTask(task: Task<Input>, lane: Lane<Handles>): Promise<void> {
    const { backlog, plan } = this.#job;
    let context: TaskContext;
    let workspace: Workspace<Handles>;
    let pageId: string | undefined;
    let collector: ArtifactCollector | undefined;
    try {
      context = this.#job.contextOf(task.input, task.index);
    } catch (error) {
      return this.#failWithoutContext(task, error);
    }
    try {
      workspace = await raceAbort(lane.workspace(context), this.#lease.signal);
      collector = await this.#observe(workspace);
      pageId = await this.#pageIdOf(workspace);
    } catch (error) {
      if (error instanceof InvalidOptionError) return this.#failWithoutContext(task, error);
      void backlog.putBack(task);
      throw error;
    }
    // The browser may have been retired while the page was opened.
    if (this.#retired.signal.aborted) return backlog.putBack(task);
    if (++this.#begun >= plan.settings.tasksPerLease) this.#retired.abort(undefined);
    this.#job.beginAttempt(task);
    const running = this.#attempt(task, workspace.handles);
    lane.prepare();
    const attempt = await running;
    await Promise.all([
      collector && this.#collectArtifacts(collector, task, attempt),
      this.#collectDownloads(task, attempt, pageId),
    ]);
    // The outcome does not wait until the page is closed.
    await Promise.all([this.#job.endAttempt(task, attempt, this.#lease), this.#clear(lane, attempt)]);
  }

  /** Ends the attempt of a task whose context can't be opened, in any browser. */
  async #failWithoutContext(task: Task<Input>, reason: unknown): Promise<void> {
    // The same options for all tasks.
    if (typeof this.#job.plan.settings.contextOptions !== 'function') this.#job.fail(reason);
    this.#job.beginAttempt(task);
    await this.#job.endAttempt(task, { status: 'rejected', reason }, this.#lease);
  }

  /** Without isolation, other tasks may use the same context. */
  #observe({ handles }: Workspace<Handles>): Promise<ArtifactCollector | undefined> {
    const { isolation } = this.#job.plan.settings;
    return this.#lease.observe({ handles, scope: isolation === 'none' ? 'page' : 'context' });
  }

  async #collectArtifacts(
    collector: ArtifactCollector,
    { index, attempts, artifacts }: Task<Input>,
    { status }: PromiseSettledResult<Value>,
  ): Promise<void> {
    // A task that was ended with the job has no outcome.
    if (this.#job.signal.aborted) return;
    const { name } = this.#job.plan.settings;
    const paths = await collector.collect({
      name: `${name === undefined ? '' : `${name}-`}task-${index}-attempt-${attempts}`,
      failed: status === 'rejected',
      isReachable: !this.#lease.signal.aborted,
    });
    artifacts.push(...paths);
  }

  /** Needed where several tasks run in a browser at the same time: then each download is the task's of its page. */
  async #pageIdOf({ handles }: Workspace<Handles>): Promise<string | undefined> {
    const { downloads, link, signal } = this.#lease;
    if (!downloads || this.#job.plan.settings.pagesPerLease === 1) return undefined;
    return raceAbort(link.connection.pageId?.(handles) ?? Promise.resolve(undefined), signal);
  }

  async #collectDownloads(
    { downloads }: Task<Input>,
    attempt: PromiseSettledResult<Value>,
    pageId: string | undefined,
  ): Promise<void> {
    const { connection } = this.#lease.link;
    const { isolation, pagesPerLease } = this.#job.plan.settings;
    const owns = (page: DownloadPage | undefined) => {
      if (!page || pageId === undefined) return false;
      if (isolation === 'none') return page.ids.includes(pageId);
      return page.contextId === connection.downloads?.pageOf(pageId).contextId;
    };
    const request = { isCut: hasTimedOut(attempt), owns: pagesPerLease > 1 ? owns : undefined };
    downloads.push(...((await this.#lease.downloads?.settle(connection, request)) ?? []));
  }

  /** Prepares the lane for its next task. After the last task, the end of the lease closes everything. */
  async #clear(lane: Lane<Handles>, attempt: PromiseSettledResult<Value>): Promise<void> {
    if (this.#retired.signal.aborted) return;
    await raceAbort(lane.clear({ reusable: !hasTimedOut(attempt) }), this.#lease.signal);
  }

  async #attempt(task: Task<Input>, handles: Handles): Promise<PromiseSettledResult<Value>> {
    const { fn, settings } = this.#job.plan;
    const { taskTimeout } = settings;
    const { input, index, attempts: attempt } = task;
    const call: Callback<Handles, Value> = async ({ session, signal: leaseSignal }) => {
      const abort = new LinkedAbort(leaseSignal);
      const { signal } = abort;
      const { sessionId } = this.#lease;
      const timer = startTimer(taskTimeout, () =>
        abort.abort(new TaskTimeoutError(taskTimeout, { sessionId })),
      );
      try {
        const work = async () => fn({ ...handles, input, index, session, signal, attempt });
        return await raceAbort(work(), signal);
      } finally {
        clock.clearTimeout(timer);
        abort.dispose();
      }
    };
    const [result] = await Promise.allSettled([this.#lease.call(call, { index })]);
    return result;
  }

  #retire(cause: unknown): void {
    const { signal, sessionId } = this.#lease;
    // If the browser was lost or the caller ended the job, the lease's signal has the reason.
    if (!signal.aborted) {
      const message = `The browser of session ${sessionId} no longer opens or closes pages.`;
      this.#fault ??= new ConnectError(message, { sessionId, cause });
    }
    this.#retired.abort(cause);
  }
}

function hasTimedOut(attempt: PromiseSettledResult<unknown>): boolean {
  if (attempt.status === 'fulfilled' || !isPooledBrowserError(attempt.reason)) return false;
  return attempt.reason instanceof TaskTimeoutError;
}
