import type { ReleaseError } from '../shared/service-errors.js';

/** The lease that an acquire request asked for. */
interface RequestedLease {
  /** Id or name of the pool. */
  pool: string;
  /** Name and tags of the acquire request. */
  name?: string;
  tags?: Readonly<Record<string, string>>;
}

/**
 * The service leased a browser after the call was aborted, or in an incomplete response. The pool releases the browser.
 *
 * @inline
 */
interface GrantOrphanedEvent extends RequestedLease {
  type: 'grant-orphaned';
  sessionId: string;
}

/**
 * The outcome of an acquire request is unknown: a browser may be leased until its inactivity timeout.
 *
 * @inline
 */
interface OutcomeUnknownEvent extends RequestedLease {
  type: 'outcome-unknown';
  error: Error;
}

/**
 * A browser was released, or its session no longer exists.
 *
 * @inline
 */
interface ReleasedEvent {
  type: 'released';
  pool: string;
  sessionId: string;
  released: 'reused' | 'destroyed';
}

/**
 * A browser could not be released, and stays leased until its inactivity timeout; or the outcome is unknown, and
 * `error.released` is `'unknown'`.
 *
 * @inline
 */
interface ReleaseFailedEvent {
  type: 'release-failed';
  pool: string;
  sessionId: string;
  error: ReleaseError;
}

/** An event of `BrowserPool` itself, outside of a call. */
export type PoolEvent = GrantOrphanedEvent | OutcomeUnknownEvent | ReleasedEvent | ReleaseFailedEvent;
