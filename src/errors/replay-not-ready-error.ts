import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** The film of a recording was not written in time. It may be later. */
export class ReplayNotReadyError extends PooledBrowserError {
  override readonly name = 'ReplayNotReadyError' as const;
  declare readonly code: 'ERR_REPLAY_NOT_READY';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_REPLAY_NOT_READY', facts);
  }
}
