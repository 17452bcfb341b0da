import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** A checkpoint can't be read or written: the file is no checkpoint, or a value has no JSON. */
export class CheckpointError extends PooledBrowserError {
  override readonly name = 'CheckpointError' as const;
  declare readonly code: 'ERR_CHECKPOINT';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_CHECKPOINT', facts);
  }
}
