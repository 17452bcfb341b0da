import type { Isolation, Workspace } from '../connect/connector.js';
import type { ConnectedLease } from '../lease/connected-lease.js';
import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';

/** Timeout for opening, resetting or closing a workspace, in ms. */
const STEP_TIMEOUT = 10_000;

/**
 * A lane opens a second workspace after it has waited longer than this number of openings. It pays if the browser is far
 * away; on the same machine, it only costs memory.
 */
const PAYS_AFTER = 5;

/**
 * The workspaces of one lane. While a task runs in one, another one is prepared, so that the next task does not wait for the
 * responses of a browser that is far away: with `'context'` it is opened, with `'storage'` it is reset, as soon as a
 * second one pays.
 */
export class Lane<Handles> {
  readonly #openWorkspace: () => Promise<Workspace<Handles>>;
  readonly #isolation: Isolation;
  readonly #expectsMore: () => boolean;
  #current: Workspace<Handles> | undefined;
  /** In the order of the tasks. Undefined if a new one is needed. */
  readonly #prepared: Promise<Workspace<Handles> | undefined>[] = [];
  #closing: Promise<void> = Promise.resolve();
  /** How long the lane has waited for its workspace, in ms. */
  #waited = 0;
  /** How long the latest workspace took to open, in ms. */
  #openTime = Number.POSITIVE_INFINITY;

  constructor(lease: ConnectedLease<Handles>, isolation: Isolation, expectsMore: () => boolean) {
    this.#isolation = isolation;
    this.#expectsMore = expectsMore;
    this.#openWorkspace = () => lease.openWorkspace(isolation);
  }

  /** Returns the workspace for the next task. Rejects when the browser does not open a page. */
  async workspace(): Promise<Workspace<Handles>> {
    this.#current ??= (await this.#prepared.shift()) ?? (await this.#open());
    return this.#current;
  }

  /** Opens the workspace of the next task while the current task runs, if it pays. */
  prepare(): void {
    if (this.#prepared.length > 0 || !this.#expectsMore()) return;
    if (this.#secondPays) this.#prepareWith(this.#open());
  }

  get #secondPays(): boolean {
    if (this.#isolation !== 'storage') return this.#isolation === 'context';
    return this.#waited >= PAYS_AFTER * this.#openTime;
  }

  /**
   * Resets the workspace after its task, or closes it. Resolves when the lane can run another task; until then another lane
   * may take it. Rejects when the browser no longer opens or closes pages.
   */
  async clear({ reusable }: { reusable: boolean }): Promise<void> {
    const workspace = this.#current!;
    this.#current = undefined;
    if (!reusable || this.#isolation === 'context') return this.#close(workspace);
    this.#prepareWith(this.#reset(workspace));
    if (this.#prepared.length > 1) return undefined;
    const began = performance.now();
    await this.#prepared[0];
    this.#waited += performance.now() - began;
    return undefined;
  }

  /** Waits for the open steps. The end of the lease closes the workspaces that are left. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#prepared);
    await this.#closing;
  }

  #prepareWith(workspace: Promise<Workspace<Handles> | undefined>): void {
    this.#prepared.push(workspace);
    // `workspace` and `end` handle the failure.
    workspace.catch(() => {});
  }

  /** Replaces a workspace that cannot be reset. Resolves to undefined if no task is left for it. */
  async #reset(workspace: Workspace<Handles>): Promise<Workspace<Handles> | undefined> {
    if (await limited(workspace.reset()).catch(() => false)) return workspace;
    await this.#close(workspace);
    return this.#expectsMore() ? this.#open() : undefined;
  }

  async #open(): Promise<Workspace<Handles>> {
    const began = performance.now();
    const workspace = await limited(this.#openWorkspace());
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

function limited<T>(step: Promise<T>): Promise<T> {
  const late = () => new Error(`The browser did not respond within ${duration(STEP_TIMEOUT)}`);
  return raceTimeout(STEP_TIMEOUT, () => step, late);
}
