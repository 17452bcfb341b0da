import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** The leased browser could not be reached over its websocket. It is given back as bad. */
export class ConnectError extends PooledBrowserError {
  override readonly name = 'ConnectError' as const;
  declare readonly code: 'ERR_CONNECT';

  /** HTTP status with which the websocket upgrade was refused, where that is what happened. */
  declare readonly status?: number;

  constructor(message: string, { status, ...facts }: ErrorFacts & { status?: number | undefined } = {}) {
    super(message, 'ERR_CONNECT', facts);
    if (status !== undefined) this.status = status;
  }
}
