import { INTERNALS } from '../service/pool-internals.js';
import { unreachable } from '../service/reachability.js';
import type { LinkedAbort } from '../shared/abort.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { PoolConnectionError } from '../shared/service-errors.js';
import type { LeaseCall } from './lease-call.js';
import type { NestedWait } from './nesting.js';

/** No connection to the service was opened within `unreachableTimeout`. */
export function neverReachedError(call: LeaseCall, deadline: LinkedAbort): PoolConnectionError {
  const { pool, settings } = call;
  const { client } = pool[INTERNALS];
  const { message, cause } = unreachable(client.service.url, client.service.reachability.lastFailure, {});
  const more =
    `No connection was opened for ${duration(settings.unreachableTimeout)}. ` +
    'If the service needs longer to start, increase unreachableTimeout.';
  const facts = { ...factsOf(call, deadline), cause, isPermanent: true };
  return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', facts);
}

/**
 * No browser became available in time.
 *
 * @param isFailing The last request failed, with `cause`. The message begins with it: the pool may have browsers.
 */
export function timeoutError(
  call: LeaseCall,
  deadline: LinkedAbort,
  {
    cause,
    isFailing,
    nested,
  }: { cause: Error | undefined; isFailing: boolean; nested: NestedWait | undefined },
): AcquireTimeoutError {
  const { pool, settings, acquireAttempts: attempts } = call;
  const [limit, advice] = deadline.timedOut
    ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
    : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
  const message =
    `No browser became available in pool "${pool.idOrName}" ${limit} ` +
    `(${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`;
  const sentences = [
    cause && isFailing && sentence(cause.message),
    message,
    // A larger pool does not help if the service can't be reached.
    !(isFailing && cause instanceof PoolConnectionError) &&
      `${advice}, enlarge the pool, or look for leases that are not released.`,
    nested?.where,
  ];
  return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), { ...factsOf(call, deadline), cause });
}

/** The name of the lease is in use, perhaps by a lease of this call whose response was lost. */
export function nameTakenError(
  call: LeaseCall,
  deadline: LinkedAbort,
  { name, cause }: { name: string; cause: unknown },
): LeaseNameTakenError {
  const message =
    `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
    'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
  return new LeaseNameTakenError(message, name, { ...factsOf(call, deadline), cause });
}

function factsOf({ pool, acquireAttempts: attempts }: LeaseCall, { elapsed }: LinkedAbort) {
  return { pool: pool.idOrName, attempts, elapsed };
}
