import type { ServiceClient } from './client.js';
import type { HeldSessions } from './held-sessions.js';

/** Reads the internals of a pool. */
export const INTERNALS: unique symbol = Symbol('pooled-browser.internals');

/** The state of a pool that the modules of a lease share. */
export interface PoolInternals {
  readonly client: ServiceClient;
  /** Since the first lease: see `heldSessionsOf`. */
  held?: HeldSessions;
  /** Most leases of this process at once. */
  readonly limit: number;
}
