import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import { isOutcomeUnknown } from '../service/outcome.js';

/** Back-off between tries, in p-retry's terms; times in milliseconds. */
export interface RetryOptions {
  /** Tries after the first that did not wait as asked. Default: no limit but `acquireTimeout`. */
  retries?: number | undefined;
  /** How fast the back-off grows. Default: 2. */
  factor?: number | undefined;
  /** First back-off, in ms. Default: 500. */
  minTimeout?: number | undefined;
  /** Longest back-off, in ms. Default: 10,000. */
  maxTimeout?: number | undefined;
  /** Full jitter: any time from 0 to the back-off. Default: `true`. */
  randomize?: boolean | undefined;
}

/** Thrown inside the poll loop: the service answered that no browser became available (204). */
export class NoBrowserYet extends Error {}

/**
 * What a failed acquire request means for the next:
 * - `ask-again`: nothing was leased, a browser may yet come;
 * - `unknown`: one may have been leased: ask once more, not twice;
 * - `given-back`: one was leased in a broken response, and is given back: ask once more, not twice;
 * - `final`: no later try will change it.
 */
export type Verdict = 'ask-again' | 'unknown' | 'given-back' | 'final';

const ASK_AGAIN = [408, 429, 503, 504];

export function judge(error: unknown, hasName: boolean): Verdict {
  if (error instanceof NoBrowserYet) return 'ask-again';
  if (error instanceof PoolServiceError) {
    if (ASK_AGAIN.includes(error.status)) return 'ask-again';
    if (error.status === 409) return isNameConflict(error, hasName) ? 'final' : 'ask-again';
    return isOutcomeUnknown(error) ? 'unknown' : 'final';
  }
  if (error instanceof PoolConnectionError) return isOutcomeUnknown(error) ? 'unknown' : 'ask-again';
  // Its name is in use until it is back: asking again would be refused for that.
  if (error instanceof PoolResponseError && error.sessionId && !hasName) return 'given-back';
  return 'final';
}

/** True for a refusal that can mean that the lease's name is in use (beyond the given interface). */
export function isNameTaken(error: unknown): boolean {
  return error instanceof PoolServiceError && (error.status === 409 || error.status === 422);
}

/** True when the failure says that the service itself is in trouble, and not that it has no browser to give. */
export function isOutage(error: unknown): boolean {
  if (error instanceof PoolConnectionError) return true;
  return error instanceof PoolServiceError && (error.status === 429 || error.status >= 500);
}

/** Codes with which a 409 means "none available", even for a lease with a name. */
const NONE_AVAILABLE = /available|capacity|exhaust|timeout|timed_out|empty|busy/i;

/** A lease's name must be unique (interface: Limits): without a name, a 409 can only mean that no browser is there. */
function isNameConflict({ code, details, inner_error }: PoolServiceError, hasName: boolean): boolean {
  const codes = [code, inner_error?.code, ...(details ?? []).map((detail) => detail.code)];
  return (
    hasName && !codes.some((code) => code !== undefined && NONE_AVAILABLE.test(code) && !/name/i.test(code))
  );
}
