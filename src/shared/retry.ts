import type { Options } from 'p-retry';
import { lazy } from './lazy.js';

const loadPRetry = lazy(() => import('p-retry'));

/**
 * Repeats an attempt while `mayRetry` resolves to true. Without `options` there is no pause: the attempt itself waits.
 */
export async function withRetries<Value>(
  attempt: () => Promise<Value>,
  mayRetry: (error: Error) => boolean | Promise<boolean>,
  options: Options = {},
): Promise<Value> {
  const { default: pRetry } = await loadPRetry();
  return pRetry(attempt, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    maxTimeout: 0,
    shouldRetry: ({ error }) => mayRetry(error),
    ...options,
  });
}
