import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/**
 * A call waits for a browser inside the callback of a lease of the same pool, and every browser of that pool is held
 * by a lease that waits like this: none would ever end.
 */
export class NestedLeaseError extends PooledBrowserError {
  override readonly name = 'NestedLeaseError' as const;
  declare readonly code: 'ERR_NESTED_LEASE';

  /** `session_id` of the lease around this call. */
  readonly outerSessionId: string;

  constructor(message: string, outerSessionId: string, facts?: ErrorFacts) {
    super(message, 'ERR_NESTED_LEASE', facts);
    this.outerSessionId = outerSessionId;
  }
}
