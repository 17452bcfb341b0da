import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import type { RetryOptions } from './retry-rules.js';

export type Backoff = { [option in keyof RetryOptions]-?: NonNullable<RetryOptions[option]> };

/** The options with their defaults, checked. */
export function checkRetryOptions(options: RetryOptions = {}): Backoff {
  rejectUnknownOptions(options, ['retries', 'factor', 'minTimeout', 'maxTimeout', 'randomize'], 'retry');
  const backoff = {
    retries: options.retries ?? Number.POSITIVE_INFINITY,
    factor: options.factor ?? 2,
    minTimeout: options.minTimeout ?? 500,
    maxTimeout: options.maxTimeout ?? 10_000,
    randomize: options.randomize ?? true,
  };
  for (const option of ['retries', 'factor', 'minTimeout', 'maxTimeout'] as const) {
    if (typeof backoff[option] === 'number' && backoff[option] >= 0) continue;
    throw new InvalidOptionError(`retry.${option}`, `retry.${option} must be a number, 0 or more.`);
  }
  if (typeof backoff.randomize !== 'boolean') {
    throw new InvalidOptionError('retry.randomize', 'retry.randomize must be true or false.');
  }
  return backoff;
}

/** Milliseconds before the next try, after `failures` in a row that did not wait. */
export function backoffDelay(
  { factor, minTimeout, maxTimeout, randomize }: Backoff,
  failures: number,
): number {
  const longest = Math.min(maxTimeout, minTimeout * factor ** Math.max(0, failures - 1));
  return randomize ? Math.random() * longest : longest;
}
