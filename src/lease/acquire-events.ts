import type { PoolEvent } from '../service/pool-events.js';

/** Other calls of this process are first: few of them ask at a time, so that each is served in its turn. */
export interface QueuedEvent {
  type: 'queued';
  pool: string;
  /** Calls before this one. */
  ahead: number;
}

/** An acquire request is about to be sent. */
export interface AcquiringEvent {
  type: 'acquiring';
  pool: string;
  /** Which request this is, from 1. */
  attempt: number;
  /** Milliseconds waited so far. */
  waited: number;
  /** Milliseconds left until the call gives up. */
  timeLeft: number;
}

/** An acquire request brought no browser; another follows. */
export interface WaitingEvent {
  type: 'waiting';
  pool: string;
  /** Which request brought none, from 1. */
  attempt: number;
  /** Milliseconds waited so far. */
  waited: number;
  /** Milliseconds until the next request. */
  delay: number;
  /** Why there was none, unless the service just had none. */
  error?: Error;
}

export type AcquireEvent = QueuedEvent | AcquiringEvent | WaitingEvent | PoolEvent;
