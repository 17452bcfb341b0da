import { callListener, publish } from '../shared/telemetry.js';
import { trackWork } from './background.js';
import { holdLease, type LeaseHolder } from './held-leases.js';
import type { PoolEvent } from './pool-events.js';
import { countersOf } from './pool-stats.js';
import { giveBack } from './release.js';
import type { AcquireRequest } from './wire.js';

/** How long a browser that nobody took is tried to be given back. */
const RELEASE_TIMEOUT = 30_000;

type Listener = ((event: PoolEvent) => void) | undefined;

/** Gives back, in the background, a browser that was granted when its caller had left, or in a broken response. */
export function giveBackOrphan(
  holder: LeaseHolder,
  sessionId: string,
  request: AcquireRequest,
  listener: Listener,
): void {
  const pool = holder.idOrName;
  countersOf(holder).countRequest('orphaned');
  tell({ type: 'grant-orphaned', ...aboutLease(pool, request), sessionId }, listener);
  const letGo = holdLease(holder, sessionId);
  const released = giveBack(holder, sessionId, { reuse: true, timeout: RELEASE_TIMEOUT }).then(
    () => tell({ type: 'released', pool, sessionId, released: 'reused' }, listener),
    (error: Error) => tell({ type: 'release-failed', pool, sessionId, error }, listener),
  );
  trackWork(holder, released.finally(letGo));
}

/** Tells all that is known of a lease that may have been granted, or not. */
export function tellUnknownOutcome(
  pool: string,
  request: AcquireRequest,
  error: Error,
  listener: Listener,
): void {
  tell({ type: 'outcome-unknown', ...aboutLease(pool, request), error }, listener);
}

function aboutLease(pool: string, { name, tags }: AcquireRequest) {
  return { pool, ...(name && { name }), ...(tags && { tags }) };
}

/** To the caller's listener; without one to the diagnostics channel, so that nothing goes unseen. */
function tell(event: PoolEvent, listener: Listener): void {
  callListener(listener ?? publish, event);
}
