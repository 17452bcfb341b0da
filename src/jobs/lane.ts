import type { Isolation, Workspace } from '../connect/connector.js';
import type { Lease } from '../lease/lease.js';
import { raceTimeout } from '../shared/abort.js';
import { duration, InvalidOptionError } from '../shared/errors.js';
import type { TaskContext } from './task-context.js';

/** Timeout for opening, resetting or closing a workspace, in ms. */
const STEP_TIMEOUT = 10_000;

/** A browser is far away if a round trip takes longer than this, in ms. In a near one, a further page costs only memory. */
const FAR = 20;
/**
 * A browser is busy if a page takes longer to open than `OPENING`, in ms, and `ROUND_TRIPS` round trips, of which an opening
 * takes four to nine. In a busy browser, prepared pages slow down the tasks: on two cores, four tasks with four prepared
 * contexts took a third more CPU each.
 */
const OPENING = 300;
const ROUND_TRIPS = 10;
/** A lane prepares one more workspace after it has waited as long as this number of openings take. */
const PAYS_AFTER = 2;

/** The part of a lease that its lanes use. */
export type LaneLease<Handles> = Pick<Lease<Handles>, 'openWorkspace' | 'roundTrip'>;

/** A workspace, and the context for which it was opened. */
interface Prepared<Handles> {
  readonly context: TaskContext;
  /** Resolves to undefined if a new one is needed. */
  readonly workspace: Promise<Workspace<Handles> | undefined>;
}

/**
 * The workspaces of one lane. While a task runs in one, others are prepared, so that the next tasks do not wait for the
 * responses of the browser: with `'context'` one is opened, or two if the browser is far away; with `'storage'` one is
 * reset if the browser is far away. A busy browser prepares none.
 *
 * The input of the next task is not known, so its context is prepared with the options of the current one. If two tasks in a
 * row differ, none is prepared; a context with other options than those of its task is closed.
 */
export class Lane<Handles> {
  readonly #lease: LaneLease<Handles>;
  readonly #isolation: Isolation;
  readonly #expectsMore: () => boolean;
  #current: Workspace<Handles> | undefined;
  /** In the order of the tasks. */
  readonly #prepared: Prepared<Handles>[] = [];
  /** Of the latest task. */
  #context: TaskContext | undefined;
  /** Whether the latest task had the options of the one before. */
  #isSteady = true;
  #closing: Promise<void> = Promise.resolve();
  /** How long the lane has waited for its workspace, in ms. */
  #waited = 0;
  /** How long the latest workspace took to open, in ms. */
  #openTime = 0;

  constructor(lease: LaneLease<Handles>, isolation: Isolation, expectsMore: () => boolean) {
    this.#lease = lease;
    this.#isolation = isolation;
    this.#expectsMore = expectsMore;
  }

  /**
   * Returns the workspace for the next task. Rejects when the browser does not open a page, and with an `InvalidOptionError`
   * if the library refuses the options of the context.
   */
  async workspace(context: TaskContext): Promise<Workspace<Handles>> {
    this.#isSteady = this.#context === undefined || this.#context.key === context.key;
    this.#context = context;
    this.#current ??= (await this.#takePrepared(context)) ?? (await this.#open(context));
    return this.#current;
  }

  async #takePrepared({ key }: TaskContext): Promise<Workspace<Handles> | undefined> {
    for (let next = this.#prepared.shift(); next; next = this.#prepared.shift()) {
      if (next.context.key === key) return this.#wait(next.workspace);
      const other = await next.workspace.catch(ignoreRefusal);
      if (other) await this.#close(other);
    }
    return undefined;
  }

  /** Opens the workspaces of the next tasks while the current task runs. */
  prepare(): void {
    if (this.#isolation === 'none' || this.#isBusy || !this.#isSteady || !this.#expectsMore()) return;
    const context = this.#context!;
    const wanted = (this.#isolation === 'context' ? 1 : 0) + (this.#oneMorePays ? 1 : 0);
    while (this.#prepared.length < wanted) this.#prepareWith(context, this.#open(context));
  }

  get #isBusy(): boolean {
    return this.#openTime > OPENING + ROUND_TRIPS * (this.#lease.roundTrip ?? 0);
  }

  get #oneMorePays(): boolean {
    const { roundTrip = 0 } = this.#lease;
    return roundTrip > FAR && this.#waited >= PAYS_AFTER * this.#openTime;
  }

  /**
   * Resets the workspace after its task, or closes it. Resolves when the lane can run another task; until then another lane
   * may take it. Rejects when the browser no longer opens or closes pages.
   */
  async clear({ reusable }: { reusable: boolean }): Promise<void> {
    const workspace = this.#current!;
    this.#current = undefined;
    if (!reusable || this.#isolation === 'context') return this.#close(workspace);
    const context = this.#context!;
    this.#prepareWith(context, this.#reset(workspace, context));
    if (this.#prepared.length === 1) await this.#wait(this.#prepared[0]!.workspace);
    return undefined;
  }

  /** Waits for the open steps. The end of the lease closes the workspaces that are left. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#prepared.map(({ workspace }) => workspace));
    await this.#closing;
  }

  /** Counts the time until a prepared workspace is ready. */
  async #wait<Prepared>(workspace: Promise<Prepared> | undefined): Promise<Prepared | undefined> {
    const began = performance.now();
    const prepared = await workspace;
    this.#waited += performance.now() - began;
    return prepared;
  }

  #prepareWith(context: TaskContext, workspace: Prepared<Handles>['workspace']): void {
    this.#prepared.push({ context, workspace });
    // `workspace` and `end` handle the failure.
    workspace.catch(() => {});
  }

  /** Replaces a workspace that cannot be reset. Resolves to undefined if no task is left for it. */
  async #reset(workspace: Workspace<Handles>, context: TaskContext): Promise<Workspace<Handles> | undefined> {
    if (await limited(workspace.reset()).catch(() => false)) return workspace;
    await this.#close(workspace);
    return this.#isSteady && this.#expectsMore() ? this.#open(context) : undefined;
  }

  async #open({ options }: TaskContext): Promise<Workspace<Handles>> {
    const began = performance.now();
    const workspace = await limited(this.#lease.openWorkspace(this.#isolation, options));
    this.#openTime = performance.now() - began;
    return workspace;
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
