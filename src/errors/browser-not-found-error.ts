import { PooledBrowserError } from './pooled-browser-error.js';

/** The local pool found no Chrome or Chromium on this machine. */
export class BrowserNotFoundError extends PooledBrowserError {
  override readonly name = 'BrowserNotFoundError' as const;
  declare readonly code: 'ERR_BROWSER_NOT_FOUND';

  constructor(message: string, cause?: unknown) {
    super(message, 'ERR_BROWSER_NOT_FOUND', { cause });
  }
}
