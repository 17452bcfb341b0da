import type { Isolation, Workspace } from '../connect/connector.js';
import { raceTimeout } from '../shared/abort.js';

/** Milliseconds that a page may take to open, to be made ready for the next task, and to close. */
const STEP_TIMEOUT = 10_000;

/** Runs one task after the other in one browser, beside the other lanes, and sees to the workspaces that they need. */
export class Lane<Handles> {
  readonly #open: () => Promise<Workspace<Handles>>;
  /** True where every task gets a new workspace. */
  readonly #alwaysNew: boolean;
  #current: Workspace<Handles> | undefined;
  #prepared: Promise<Workspace<Handles>> | undefined;
  #closing: Promise<void> = Promise.resolve();

  constructor(isolation: Isolation, open: (isolation: Isolation) => Promise<Workspace<Handles>>) {
    this.#alwaysNew = isolation === 'context';
    this.#open = () => limited(open(isolation));
  }

  /** The workspace for the next task. Rejects when the browser does not give one. */
  async workspace(): Promise<Workspace<Handles>> {
    if (this.#current) return this.#current;
    const opening = this.#prepared ?? this.#open();
    this.#prepared = undefined;
    this.#current = await opening;
    return this.#current;
  }

  /** Opens the workspace of the next task while this one runs. */
  prepare(): void {
    if (!this.#alwaysNew) return;
    this.#prepared ??= this.#open();
    // Whoever takes it hears of its failure.
    this.#prepared.catch(() => {});
  }

  /** The task is over: its workspace is made ready for the next one, or replaced. Rejects when the last does not close. */
  async clear({ reusable }: { reusable: boolean }): Promise<void> {
    const workspace = this.#current!;
    if (reusable && (await limited(workspace.reset()).catch(() => false))) return;
    this.#current = undefined;
    // One at a time: what is to be closed must not pile up.
    await this.#closing;
    this.#closing = limited(workspace.close());
    this.#closing.catch(() => {});
  }

  /** Waits for what is under way. What is open then is for the lease's sweep. */
  async end(): Promise<void> {
    await this.#prepared?.catch(() => {});
    await this.#closing;
  }
}

function limited<T>(work: Promise<T>): Promise<T> {
  const late = () => new Error(`The browser did not follow within ${STEP_TIMEOUT} ms`);
  return raceTimeout(STEP_TIMEOUT, () => work, late);
}
