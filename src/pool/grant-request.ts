import type { LeaseRequest } from '../services/browser-service.js';
import type { PoolEvent } from './events.js';
import type { PoolCore } from './pool-core.js';

/** Time in ms to wait for a response beyond the requested wait, so that no lease is lost by a timeout. */
export const ACQUIRE_GRACE = 15_000;
/** How long a service that decides itself may wait, in ms, for the search after the end of the process. */
const ASSUMED_WAIT = 5 * 60_000;

/** An acquire request, and its caller. */
export interface GrantRequest<Session extends object = object> {
  readonly pool: PoolCore<Session>;
  readonly lease: LeaseRequest;
  readonly signal: AbortSignal | undefined;
  readonly emit: (event: PoolEvent) => void;
  /** The browser is released also if this process is killed. */
  readonly onCrash?: boolean;
  /** Called when the request is written: from then on, it may lease a browser. */
  readonly onWrite?: () => void;
}

/** Milliseconds within which the service can lease a browser for a request that was sent. */
export function longestWait({ pool, lease }: GrantRequest): number {
  const asked = lease.wait === undefined ? undefined : lease.wait * 1000;
  const assumed = pool.service.waits === 'never' ? 0 : ASSUMED_WAIT;
  return (asked ?? assumed) + ACQUIRE_GRACE;
}

/** What the caller asked for, for the events. */
export function requestedLease({ pool, lease: { name, tags } }: GrantRequest) {
  return { pool: pool.idOrName, ...(name && { name }), ...(tags && { tags }) };
}
