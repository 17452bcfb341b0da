import type { AcquireRequest } from '../service/wire.js';
import type { AcquireEvent } from './acquire-events.js';
import type { Backoff } from './backoff.js';

/** How a browser is to be asked for. */
export interface AcquirePlan {
  /** Name, tags and start URL of the lease. */
  request: Omit<AcquireRequest, 'acquire_timeout_seconds'>;
  /** Milliseconds to wait for a browser in all. */
  acquireTimeout: number;
  /** Milliseconds that each request asks to wait; `false` leaves it to the service. */
  pollTimeout: number | false;
  retry: Backoff;
  signal: AbortSignal;
  onEvent: (event: AcquireEvent) => void;
  /** Asks without waiting for its turn: those before it may wait for a browser that its caller holds. Default: false. */
  skipsLine?: boolean;
  /** Outcomes of earlier requests that the call can't know: after the second it asks no more. Default: 0. */
  unknownOutcomes?: number;
  /** A sentence for the error when time is up. */
  note?: string | undefined;
}
