import type { AcquireOutcome } from '../pool/grant-reply.js';
import { PoolResponseError, PoolServiceError } from '../shared/service-errors.js';

/**
 * What asking a pool has shown, if it led to no connected browser. Beside the outcomes of a request:
 * - `unfit`: the pool, or the browser that it leased, can't do what an option asks;
 * - `late`: the pool had no browser for `failoverAfter`;
 * - `unreached`: no connection to its service was opened within `unreachableTimeout`;
 * - `closed`: it was not asked, because its service has an outage that other calls wait for;
 * - `unconnected`: it leased a browser that could not be reached.
 */
export interface Outcome {
  readonly kind:
    | Exclude<AcquireOutcome<object>['kind'], 'granted'>
    | 'unfit'
    | 'late'
    | 'unreached'
    | 'closed'
    | 'unconnected';
  /** Undefined if the service just had no browser. */
  readonly error?: Error | undefined;
  /** The service itself has a problem. */
  readonly isOutage?: boolean;
  /** The service let the request wait as requested: the next one follows at once, and counts as no retry. */
  readonly hasWaited?: boolean;
  /** The gate makes the pause, for all calls together. */
  readonly isPaced?: boolean;
  /** Milliseconds that the service asked to wait. */
  readonly retryAfter?: number | undefined;
}

/** What else the decision depends on. */
export interface AttemptFacts {
  /** Another pool can be asked. */
  readonly hasOther: boolean;
  /** That pool was asked before: to ask it again is a retry. */
  readonly isNextRound: boolean;
  /** Another pool was asked, and only had no browser in its time. */
  readonly isOtherSlow: boolean;
  /** The option `failoverAfter`, in ms. */
  readonly failoverAfter: number;
  /** Retries that the call may still make. */
  readonly retriesLeft: number;
  /** Browsers of this pool that the call may still try to reach. */
  readonly connectsLeft: number;
  /** Requests of the call with an unknown outcome, and broken responses whose browser was released; this one included. */
  readonly unknowns: number;
  readonly brokenGrants: number;
  /** The lease has a name, which a browser that is still being released uses. */
  readonly hasName: boolean;
  /** The backoff of the call, in ms. */
  readonly backoff: number;
}

/**
 * What follows: the same pool again after a pause in ms; another pool, and whether this one is asked again after it; or the
 * end of the call, with the error of the outcome.
 */
export type NextAttempt =
  | { readonly again: number; readonly isRetry: boolean }
  | { readonly nextPool: 'and return' | 'for good'; readonly isRetry: boolean }
  | { readonly fail: true };

const FAIL: NextAttempt = { fail: true };
const NOT_AGAIN: NextAttempt = { nextPool: 'for good', isRetry: false };

/** Decides what follows an outcome. The first line that fits counts. */
export function nextAttempt(outcome: Outcome, facts: AttemptFacts): NextAttempt {
  const { kind, error, hasWaited = false, isPaced = false } = outcome;
  const { hasOther, isNextRound, retriesLeft, unknowns, brokenGrants, hasName } = facts;
  const isTried = retriesLeft <= 0;

  if (kind === 'unconnected' && facts.connectsLeft > 0) return { again: 0, isRetry: false };
  if (kind === 'unfit' || kind === 'unreached' || kind === 'unconnected') return hasOther ? NOT_AGAIN : FAIL;
  if (kind === 'late' || kind === 'closed')
    return hasOther ? { nextPool: 'and return', isRetry: false } : FAIL;
  if (kind === 'refused') return hasOther && isQuota(error) ? NOT_AGAIN : FAIL;
  // A pool that is only slow can still lease a browser before the deadline.
  const last = facts.isOtherSlow ? NOT_AGAIN : FAIL;
  // A success that can't be read most likely leased a browser: the same pool would lease a second one.
  if (kind === 'unknown' && error instanceof PoolResponseError && (!hasOther || unknowns > 1)) return FAIL;
  if (kind === 'unknown' && unknowns > 1) return last;
  // A request for the name of a browser that is still being released would be refused.
  if (kind === 'released' && (hasName || brokenGrants > 1)) return FAIL;
  if (hasOther && isBetterElsewhere(outcome, facts) && !(isNextRound && isTried))
    return { nextPool: 'and return', isRetry: isNextRound };
  if (hasWaited && (kind === 'none' || kind === 'unavailable')) return { again: 0, isRetry: false };
  if (isTried) return last;
  return { again: isPaced ? 0 : facts.backoff, isRetry: true };
}

/** The service has a problem, or asks to wait for longer than a pool may take. */
function isBetterElsewhere(
  { kind, error, isOutage = false, hasWaited = false, retryAfter = 0 }: Outcome,
  { failoverAfter }: AttemptFacts,
): boolean {
  const isDown = isOutage && !hasWaited && !isRateLimit(error);
  return isDown || kind === 'unknown' || retryAfter > failoverAfter;
}

/** The service works, and says how long to wait. */
export function isRateLimit(error: Error | undefined): boolean {
  return error instanceof PoolServiceError && error.status === 429;
}

/** Codes of a 403 that mean that the plan or the credits are used up, and not that the token lacks a permission. */
const QUOTA = /quota|credit|billing|payment|limit|plan|usage/i;

/** The service refuses until its user pays or waits: another service may have a browser. */
function isQuota(error: Error | undefined): boolean {
  if (!(error instanceof PoolServiceError)) return false;
  return error.status === 402 || (error.status === 403 && QUOTA.test(error.code));
}
