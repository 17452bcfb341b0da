import { isRecord } from '../internal/is-record.js';
import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** An argument or option that is not allowed. Thrown before anything is sent. */
export class InvalidOptionError extends PooledBrowserError {
  override readonly name = 'InvalidOptionError' as const;
  declare readonly code: 'ERR_INVALID_OPTION';

  /** The option at fault, such as `tags` or `retry.factor`. */
  readonly option: string;

  constructor(option: string, message: string, facts?: ErrorFacts) {
    super(message, 'ERR_INVALID_OPTION', facts);
    this.option = option;
  }
}

/** Refuses an option that does not exist: a misspelt one would be ignored in silence. */
export function rejectUnknownOptions(options: unknown, known: readonly string[], caller: string): void {
  if (!isRecord(options)) throw new InvalidOptionError('options', `${caller} takes an object of options.`);
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw new InvalidOptionError(unknown, `${caller} has no option ${unknown}. It takes: ${known.join(', ')}.`);
}
