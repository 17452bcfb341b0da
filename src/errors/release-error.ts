import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** A browser could not be given back in time. It stays leased until its inactivity time-out ends it. */
export class ReleaseError extends PooledBrowserError {
  override readonly name = 'ReleaseError' as const;
  declare readonly code: 'ERR_RELEASE';
  declare readonly sessionId: string;

  constructor(message: string, facts: ErrorFacts & { sessionId: string }) {
    super(message, 'ERR_RELEASE', facts);
  }
}
