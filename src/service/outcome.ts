import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';

/** Error statuses with which a service says that it did nothing. After any other 5xx it may have granted a browser. */
const NOTHING_DONE = [503, 504];

/** True when an acquire request failed in a way that leaves open whether a browser was granted. */
export function isOutcomeUnknown(
  error: unknown,
): error is PoolConnectionError | PoolResponseError | PoolServiceError {
  if (error instanceof PoolConnectionError) return error.code === 'ERR_POOL_NO_RESPONSE';
  if (error instanceof PoolResponseError) return error.sessionId === undefined;
  if (error instanceof PoolServiceError) return error.status >= 500 && !NOTHING_DONE.includes(error.status);
  return false;
}
