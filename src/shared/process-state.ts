import { KnownSecrets } from './known-secrets.js';

/** State that several modules share and that belongs to the process, instead of a pool or a call. */

/** What `redact` removes from every text. */
export const secrets = {
  /** Secret values in all their forms. */
  known: new KnownSecrets(),
  /** Names of parameters whose values are secrets. */
  parameters: new Set(['access_token', 'token']),
  /** The pattern of these parameters. */
  named: undefined as RegExp | undefined,
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
export const endTasks = {
  tasks: new Set<EndTask>(),
  /**
   * While a signal ends the process: resolves if the process continues after all. Until then the program stands still, as
   * after a signal without this library: nothing new is leased, and no call fails because its browser is released. An uncaught
   * error would replace the exit code of the signal.
   */
  ending: undefined as Promise<void> | undefined,
};

/** Whether a warning has reported that no helper process can run. */
export const helpers = { hasWarned: false };

/** What all pools at one address share, by address. */
export const hosts = new Map<string, object>();

/** Browsers without a service that have data of a lease whose cleaning failed, by address, with what the lease has done there. */
export const uncleanBrowsers = new Map<
  string,
  {
    readonly isOwnContextUsed: boolean;
    readonly hasHttpLogin: boolean;
    readonly extensions: ReadonlySet<string>;
    readonly canBeDestroyed: boolean;
  }
>();

/** Pools that callers named by a string, with the token that they use. */
export const namedPools = new Map<string, object>();

/** Whether services could be reached, by origin. */
export const reachabilities = new Map<string, object>();

/** The number of calls so far; the runs behind thrown errors, for `runOf`; whether a listener reports those that are uncaught. */
export const runs = { count: 0, failed: new WeakMap<object, object>(), areWatched: false };
