import type { Isolation, Workspace } from '../drivers/connector.js';
import { raceTimeout } from '../shared/abort.js';
import { duration, InvalidOptionError } from '../shared/errors.js';
import type { TaskContext } from './task-context.js';

/** Timeout for opening, resetting or closing a workspace, in ms. */
const STEP_TIMEOUT = 10_000;

/** What a slot needs of the job and its browser. */
interface SlotPlan<Handles> {
  readonly isolation: Isolation;
  readonly open: (isolation: Isolation, contextOptions: object | undefined) => Promise<Workspace<Handles>>;
  /** Whether another task may come. */
  readonly expectsMore: () => boolean;
}

/** A workspace, and the context for which it was opened. */
interface Prepared<Handles> {
  readonly context: TaskContext;
  readonly workspace: Promise<Workspace<Handles>>;
}

/**
 * One of the `pagesPerLease` slots of a browser: it has the workspace of one task at a time. With isolation `'context'`, the
 * workspace of the next task opens while the current task runs; otherwise, that of the current task is reset for the next one.
 *
 * The input of the next task is not known, so its context is prepared with the options of the current one. If two tasks in a
 * row differ, none is prepared; a context with other options than those of its task is closed.
 */
export class PageSlot<Handles> {
  readonly #plan: SlotPlan<Handles>;
  #current: Workspace<Handles> | undefined;
  #next: Prepared<Handles> | undefined;
  #context: TaskContext | undefined;
  /** Whether the latest task had the options of the one before. */
  #isSteady = true;
  #closing: Promise<void> = Promise.resolve();

  constructor(plan: SlotPlan<Handles>) {
    this.#plan = plan;
  }

  /**
   * Returns the workspace for the next task. Rejects when the browser does not open a page, and with an `InvalidOptionError`
   * if the library refuses the options of the context.
   */
  async workspace(context: TaskContext): Promise<Workspace<Handles>> {
    this.#isSteady = this.#context === undefined || this.#context.key === context.key;
    this.#context = context;
    this.#current = (await this.#takePrepared(context)) ?? (await this.#open(context));
    return this.#current;
  }

  /** Opens the workspace of the next task while the current task runs. */
  prepare(): void {
    const { isolation, expectsMore } = this.#plan;
    if (isolation !== 'context' || this.#next || !this.#isSteady || !expectsMore()) return;
    const workspace = this.#open(this.#context!);
    // `workspace` and `end` handle the failure.
    workspace.catch(() => {});
    this.#next = { context: this.#context!, workspace };
  }

  /** Resets the workspace after its task, or closes it. Rejects when the browser no longer closes pages. */
  async clear({ reusable }: { reusable: boolean }): Promise<void> {
    const workspace = this.#current!;
    this.#current = undefined;
    const isReset = reusable && this.#plan.isolation !== 'context';
    if (isReset && (await limited(workspace.reset()).catch(() => false)))
      this.#next = { context: this.#context!, workspace: Promise.resolve(workspace) };
    else await this.#close(workspace);
  }

  /** Waits for the open steps. The end of the lease closes the workspaces that are left. */
  async end(): Promise<void> {
    await this.#next?.workspace.catch(() => {});
    await this.#closing;
  }

  async #takePrepared({ key }: TaskContext): Promise<Workspace<Handles> | undefined> {
    const next = this.#next;
    this.#next = undefined;
    if (next?.context.key === key) return next.workspace;
    const other = await next?.workspace.catch(ignoreRefusal);
    if (other) await this.#close(other);
    return undefined;
  }

  #open({ options }: TaskContext): Promise<Workspace<Handles>> {
    return limited(this.#plan.open(this.#plan.isolation, options));
  }

  /** Begins to close a workspace. Workspaces that close slowly must not accumulate. */
  async #close(workspace: Workspace<Handles>): Promise<void> {
    await this.#closing;
    this.#closing = limited(workspace.close());
    this.#closing.catch(() => {});
  }
}

/** Whether the options of a context are accepted matters only to their own task. */
function ignoreRefusal(error: unknown): undefined {
  if (!(error instanceof InvalidOptionError)) throw error;
}

function limited<T>(step: Promise<T>): Promise<T> {
  const late = () => new Error(`The browser did not respond within ${duration(STEP_TIMEOUT)}`);
  return raceTimeout(STEP_TIMEOUT, () => step, late);
}
