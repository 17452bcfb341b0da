import { unreachable } from '../net/reachability.js';
import type { PoolCore } from '../pool/pool-core.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { isNameConflict, PoolConnectionError } from '../shared/service-errors.js';
import type { CallSettings } from './options.js';

/** What a call had done when it failed. */
export interface Attempts {
  readonly pool: string;
  readonly attempts: number;
  /** Milliseconds. */
  readonly elapsed: number;
}

/** The pools that were asked, with the last error of each. The error is undefined if the pool only had no browser. */
export type Reasons = ReadonlyMap<PoolCore, Error | undefined>;

/** No connection to a service was opened within `unreachableTimeout`. */
export function neverReached(
  { client: { host } }: PoolCore,
  timeout: number,
  facts: Attempts,
): PoolConnectionError {
  const { message, cause } = unreachable(host.url, host.reachability.lastFailure, {});
  const more =
    `No connection was opened for ${duration(timeout)}. ` +
    'If the service needs longer to start, increase unreachableTimeout.';
  const how = { ...facts, cause, isPermanent: true };
  return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', how);
}

interface TimedOut {
  /** The error of the last request, with which the message begins. */
  readonly failure: Error | undefined;
  /** The deadline is over; otherwise the retries are used up. */
  readonly timedOut: boolean;
  readonly settings: CallSettings;
  readonly advice: string | undefined;
  readonly reasons: Reasons;
  readonly cause: Error | undefined;
  /** A service that never lets a request wait has not answered the last one. */
  readonly isSilent: boolean;
}

/** No browser became available in time. */
export function acquireTimeout(
  { failure, timedOut, settings, advice, reasons, cause, isSilent }: TimedOut,
  facts: Attempts,
): AcquireTimeoutError {
  const { pool, attempts } = facts;
  const [limit, more] = timedOut
    ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
    : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
  const hasSeveral = reasons.size > 1;
  const names = hasSeveral ? [...reasons.keys()].map(({ idOrName }) => idOrName) : [pool];
  const sentences = [
    !hasSeveral && failure && sentence(failure.message),
    `No browser became available in pool ${names.map((name) => `"${name}"`).join(' and ')} ${limit} ` +
      `(${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`,
    hasSeveral && tellReasons(reasons),
    isSilent && `${more}, or check the service: it has not answered the last request.`,
    // A larger pool does not help if the service can't be reached.
    !isSilent &&
      !(failure instanceof PoolConnectionError) &&
      `${more}, enlarge the pool, or look for leases that are not released.`,
    advice,
  ];
  return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), { ...facts, cause });
}

/** A conflict after a lost response: an earlier request of the call may have leased a browser under the name. */
export function nameTaken(error: Error, name: string, facts: Attempts): LeaseNameTakenError | undefined {
  if (!isNameConflict(error)) return undefined;
  const message =
    `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
    'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
  return new LeaseNameTakenError(message, name, { ...facts, cause: error });
}

/** A sentence for each pool. */
export function tellReasons(reasons: Reasons): string {
  return [...reasons]
    .map(([{ idOrName }, error]) =>
      sentence(`Pool "${idOrName}": ${error?.message ?? 'it had no browser in time'}`),
    )
    .join(' ');
}
