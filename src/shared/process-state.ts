/** All state that belongs to the process instead of a pool or a call. Every other module keeps its state in objects. */

/** Values that `redact` removes from every text. */
export const secrets = {
  /** The oldest first. */
  known: new Set<string>(),
  /** The forms of all secrets by their first characters, the longest first. */
  byBeginning: new Map<number, readonly string[]>(),
};

/** Work to do before this process ends. It changes neither the exit code nor the signal nor the user's listeners. */
export interface EndTask {
  /** Runs when the process exits: only synchronous work is possible then. */
  atExit?(): void;
  /** Runs after a signal, and when the event loop is empty; takes at most 2 s. */
  beforeEnd?(): Promise<void>;
  /** An origin that this process serves. When the process exits, no request can reach it. */
  readonly servedOrigin?: string;
}

/** Work to do before the process ends. There is one set of signal listeners in a process. */
export const endTasks = { tasks: new Set<EndTask>(), isEnding: false };

/** Services by address: all pools at one address share its connections, its queues and its outage gate. */
export const services = new Map<string, object>();

/** Whether services could be reached, by origin. */
export const reachabilities = new Map<string, object>();

/** The number of calls so far, and the runs behind thrown errors, for `runOf`. */
export const runs = { count: 0, failed: new WeakMap<object, object>() };
