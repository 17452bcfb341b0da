import type { AcquireRequest } from './wire.js';

interface AboutLease {
  /** Id or name of the pool. */
  pool: string;
  /** Name and tags that the acquire request asked for. */
  name?: AcquireRequest['name'];
  tags?: AcquireRequest['tags'];
}

/** A browser was granted to a caller who had left, or in a broken response: it is being given back. */
export interface GrantOrphanedEvent extends AboutLease {
  type: 'grant-orphaned';
  sessionId: string;
}

/** An acquire request was sent and its outcome can't be known: a browser may be leased until its inactivity time-out. */
export interface OutcomeUnknownEvent extends AboutLease {
  type: 'outcome-unknown';
  error: Error;
}

/** A browser is back in its pool, or known to be gone. */
export interface ReleasedEvent {
  type: 'released';
  pool: string;
  sessionId: string;
  released: 'reused' | 'destroyed';
}

/** A browser could not be given back: it stays leased until its inactivity time-out. */
export interface ReleaseFailedEvent {
  type: 'release-failed';
  pool: string;
  sessionId: string;
  error: Error;
}

export type PoolEvent = GrantOrphanedEvent | OutcomeUnknownEvent | ReleasedEvent | ReleaseFailedEvent;
