import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/**
 * No whole response came.
 * - `ERR_POOL_UNREACHABLE`: the request never left (refused, unknown host, TLS): nothing happened at the service.
 * - `ERR_POOL_NO_RESPONSE`: the request was sent and its outcome can't be known (reset, time-out).
 */
export class PoolConnectionError extends PooledBrowserError {
  override readonly name = 'PoolConnectionError' as const;
  declare readonly code: 'ERR_POOL_UNREACHABLE' | 'ERR_POOL_NO_RESPONSE';

  constructor(message: string, code: PoolConnectionError['code'], facts?: ErrorFacts) {
    super(message, code, facts);
  }
}
