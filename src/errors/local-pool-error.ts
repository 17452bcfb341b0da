import { PooledBrowserError } from './pooled-browser-error.js';

/** The local pool could not start, or could not start a browser. */
export class LocalPoolError extends PooledBrowserError {
  override readonly name = 'LocalPoolError' as const;
  declare readonly code: 'ERR_LOCAL_POOL';

  constructor(message: string, cause?: unknown) {
    super(message, 'ERR_LOCAL_POOL', { cause });
  }
}
