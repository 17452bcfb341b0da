import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** The service answered with something that the interface does not allow: never handed out as data. */
export class PoolResponseError extends PooledBrowserError {
  override readonly name = 'PoolResponseError' as const;
  declare readonly code: 'ERR_POOL_RESPONSE';

  /** HTTP status of the response. */
  readonly status: number;

  constructor(message: string, status: number, facts?: ErrorFacts) {
    super(message, 'ERR_POOL_RESPONSE', facts);
    this.status = status;
  }
}
