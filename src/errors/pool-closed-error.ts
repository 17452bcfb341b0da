import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** A call on a `BrowserPool` after its `close()`. */
export class PoolClosedError extends PooledBrowserError {
  override readonly name = 'PoolClosedError' as const;
  declare readonly code: 'ERR_POOL_CLOSED';

  constructor(facts?: ErrorFacts) {
    super('This BrowserPool was closed. Make a new one.', 'ERR_POOL_CLOSED', facts);
  }
}
