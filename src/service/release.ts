import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { withRetries } from '../shared/retry.js';
import { PoolClosedError, ReleaseError } from '../shared/service-errors.js';
import type { ReleaseOptions } from './pool-options.js';
import { meaningOf } from './status.js';

/** The part of a pool that releases browsers. */
export interface Releaser {
  readonly idOrName: string;
  release(sessionId: string, options: ReleaseOptions): Promise<void>;
}

/**
 * Releases a browser: repeats the request until the service confirms it, or until `timeout` ms have elapsed. 404 means
 * that the session no longer exists. If a failed request did release the browser and the service has leased it again
 * under the same session id, a repeated request ends that lease: the API can't tell the two apart.
 *
 * @throws ReleaseError with the id of the session that is still leased.
 */
export async function releaseWithRetry(
  pool: Releaser,
  sessionId: string,
  { reuse, timeout }: { reuse: boolean; timeout: number },
): Promise<'released' | 'gone'> {
  const started = performance.now();
  const timeLeft = () => Math.max(0, timeout - (performance.now() - started));
  try {
    await withRetries(() => pool.release(sessionId, { reuse, timeout: timeLeft() }), {
      retries: Number.POSITIVE_INFINITY,
      maxRetryTime: timeout,
      minTimeout: 100,
      maxTimeout: 2000,
      randomize: true,
      shouldRetry: ({ error }) => isTransient(error),
    });
    return 'released';
  } catch (cause) {
    if (statusOf(cause) === 404) return 'gone';
    const elapsed = performance.now() - started;
    throw new ReleaseError(
      `Session ${sessionId} of pool ${pool.idOrName} could not be released within ${Math.round(timeout)} ms. ` +
        'It stays leased until its inactivity timeout.',
      { pool: pool.idOrName, sessionId, elapsed, cause },
    );
  }
}

function isTransient(error: Error): boolean {
  if (error instanceof InvalidOptionError || error instanceof PoolClosedError) return false;
  const status = statusOf(error);
  return status === undefined || meaningOf(status).isTransient;
}

/** Also for errors of functions of the user that have a `status`. */
function statusOf(error: unknown): number | undefined {
  return isRecord(error) && typeof error['status'] === 'number' ? error['status'] : undefined;
}
