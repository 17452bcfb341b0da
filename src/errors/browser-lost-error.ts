import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/**
 * How a connection ended before its time:
 * - `dropped`: the socket broke or fell silent;
 * - `closed-by-service`: the other side closed it in due form, as when the browser dies;
 * - `expired`: the other side closed it because the session's time was up;
 * - `closed-by-callback`: the caller's code closed the browser or its connection.
 */
export type LossReason = 'dropped' | 'closed-by-service' | 'expired' | 'closed-by-callback';

/** The browser went away while the callback had it. A run that lost its browser is not a success. */
export class BrowserLostError extends PooledBrowserError {
  override readonly name = 'BrowserLostError' as const;
  declare readonly code: 'ERR_BROWSER_LOST';

  /** How the connection ended. */
  readonly reason: LossReason;

  constructor(message: string, reason: LossReason, facts?: ErrorFacts) {
    super(message, 'ERR_BROWSER_LOST', facts);
    this.reason = reason;
  }
}

/** True when the browser went away while the callback had it. */
export function isBrowserLostError(error: unknown): error is BrowserLostError {
  return error instanceof Error && error.name === 'BrowserLostError' && 'reason' in error;
}
