import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** No browser became available in time. */
export class AcquireTimeoutError extends PooledBrowserError {
  override readonly name = 'AcquireTimeoutError' as const;
  declare readonly code: 'ERR_ACQUIRE_TIMEOUT';
  declare readonly attempts: number;

  /** Milliseconds waited in all. */
  readonly waited: number;

  constructor(message: string, facts: ErrorFacts & { attempts: number; elapsed: number }) {
    super(message, 'ERR_ACQUIRE_TIMEOUT', facts);
    this.waited = facts.elapsed;
  }
}

/** True when no browser became available in time. */
export function isAcquireTimeoutError(error: unknown): error is AcquireTimeoutError {
  return error instanceof Error && error.name === 'AcquireTimeoutError' && 'waited' in error;
}
