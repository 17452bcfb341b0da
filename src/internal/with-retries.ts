import type { Options } from 'p-retry';
import { lazy } from './lazy.js';

const library = lazy(() => import('p-retry'));

/** p-retry, loaded with the first call: whoever only imports this library does not pay for it. */
export async function withRetries<Value>(attempt: () => Promise<Value>, options: Options): Promise<Value> {
  const { default: pRetry } = await library();
  return pRetry(attempt, options);
}
