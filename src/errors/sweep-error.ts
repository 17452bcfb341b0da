import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** Pages or contexts of the lease could not be closed: the browser is not fit for the next one. */
export class SweepError extends PooledBrowserError {
  override readonly name = 'SweepError' as const;
  declare readonly code: 'ERR_SWEEP';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_SWEEP', facts);
  }
}
