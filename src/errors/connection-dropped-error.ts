import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/**
 * The connection ended while `lease.use` was under way, and the lease goes on over a new one. What was called may or may
 * not have happened: it is never repeated for you.
 */
export class ConnectionDroppedError extends PooledBrowserError {
  override readonly name = 'ConnectionDroppedError' as const;
  declare readonly code: 'ERR_CONNECTION_DROPPED';

  constructor(facts?: ErrorFacts) {
    super(
      'The connection to the browser ended while this was under way. It may or may not have happened, and was not ' +
        'repeated: look at the page, then decide.',
      'ERR_CONNECTION_DROPPED',
      facts,
    );
  }
}

/** True when the connection ended during the call, and the lease goes on. */
export function isConnectionDroppedError(error: unknown): error is ConnectionDroppedError {
  return error instanceof Error && error.name === 'ConnectionDroppedError';
}
