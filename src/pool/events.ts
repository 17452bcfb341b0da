import type { ReleaseError } from '../shared/service-errors.js';

/** The requested lease of an acquire request. */
interface RequestedLease {
  /** Id or name of the pool. */
  pool: string;
  /** Name and tags of the acquire request. */
  name?: string;
  tags?: Readonly<Record<string, string>>;
}

/** @inline */
interface GrantOrphanedEvent extends RequestedLease {
  type: 'grant-orphaned';
  sessionId: string;
}

/** @inline */
interface OutcomeUnknownEvent extends RequestedLease {
  type: 'outcome-unknown';
  error: Error;
}

/** @inline */
interface ReleasedEvent {
  type: 'released';
  pool: string;
  sessionId: string;
  released: 'reused' | 'destroyed';
}

/** @inline */
interface ReleaseFailedEvent {
  type: 'release-failed';
  pool: string;
  sessionId: string;
  error: ReleaseError;
}

/**
 * An event of `BrowserPool`:
 * - `grant-orphaned`: the service leased a browser after the call was aborted, or in a response that was broken or lost; the
 *   pool releases the browser;
 * - `outcome-unknown`: the outcome of an acquire request is unknown; a browser may be leased until its inactivity timeout;
 * - `released`: a browser was released, or its session no longer exists;
 * - `release-failed`: a browser stays leased until its inactivity timeout, or the outcome of its release is unknown
 *   (`error.released`).
 */
export type PoolEvent = GrantOrphanedEvent | OutcomeUnknownEvent | ReleasedEvent | ReleaseFailedEvent;
