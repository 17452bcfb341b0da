import type { ClientSettings, ServiceClient } from './client.js';
import type { HeldSessions } from './held-sessions.js';

/** Reads the internals of a pool. */
export const INTERNALS: unique symbol = Symbol('pooled-browser.internals');

/** The state of a pool that the modules of a lease share. An import of the library loads neither the client nor the release. */
export interface PoolInternals {
  /** A function, because `inspect` must not show the token. */
  readonly settings: () => ClientSettings;
  /** Since the first request: see `clientOf`. */
  client?: ServiceClient;
  /** Since the first lease: see `heldSessionsOf`. */
  held?: HeldSessions;
  /** Most leases of this process at once. */
  readonly limit: number;
}

/** A pool, as far as its requests need it. */
export interface PoolWithInternals {
  readonly idOrName: string;
  readonly [INTERNALS]: PoolInternals;
}
