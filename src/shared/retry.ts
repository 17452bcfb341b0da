import type { Options } from 'p-retry';
import { lazy } from './lazy.js';

const loadPRetry = lazy(() => import('p-retry'));

/** p-retry, imported at the first call. */
export async function withRetries<Value>(
  attempt: (attemptNumber: number) => Promise<Value>,
  options: Options,
): Promise<Value> {
  const { default: pRetry } = await loadPRetry();
  return pRetry(attempt, options);
}

/** Backoff between attempts, in the terms of p-retry; times in ms. */
export interface Backoff {
  readonly factor: number;
  readonly minTimeout: number;
  readonly maxTimeout: number;
  readonly randomize: boolean;
}

/** Milliseconds to wait after this many failures in a row, for retries that p-retry does not make. */
export function backoffDelay(
  { factor, minTimeout, maxTimeout, randomize }: Backoff,
  failures: number,
): number {
  const longest = Math.min(maxTimeout, minTimeout * factor ** Math.max(0, failures - 1));
  return randomize ? Math.random() * longest : longest;
}
