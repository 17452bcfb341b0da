import { InvalidOptionError } from '../shared/errors.js';
import { PoolClosedError, ReleaseError } from '../shared/service-errors.js';
import { isRecord } from '../shared/json.js';
import { withRetries } from '../shared/lazy.js';

/** The part of a pool that gives browsers back. */
export interface Releaser {
  readonly idOrName: string;
  release(sessionId: string, options: { reuse?: boolean; timeout?: number }): Promise<void>;
}

/** Statuses that no later try will change. */
const FINAL = [400, 401, 403];

/**
 * Gives a browser back: asks until the service confirms, or until `timeout` milliseconds are over.
 * Every failure that may pass is tried again; 404 means that the session is gone. Where a failed try did release the
 * browser, and its next lease has the same session id, a repeated one can end that lease: the interface has no way to
 * tell the two apart, and a browser that nobody gives back would be lost for certain.
 *
 * @throws ReleaseError naming the session that is still leased.
 */
export async function giveBack(
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
      shouldRetry: ({ error }) => mayPass(error),
    });
    return 'released';
  } catch (cause) {
    if (statusOf(cause) === 404) return 'gone';
    const elapsed = performance.now() - started;
    throw new ReleaseError(
      `Session ${sessionId} could not be given back to pool ${pool.idOrName} within ${timeout} ms. ` +
        'It stays leased until its inactivity time-out ends it.',
      { pool: pool.idOrName, sessionId, elapsed, cause },
    );
  }
}

function mayPass(error: Error): boolean {
  if (error instanceof InvalidOptionError || error instanceof PoolClosedError) return false;
  return ![...FINAL, 404].includes(statusOf(error));
}

function statusOf(error: unknown): number {
  return isRecord(error) && typeof error['status'] === 'number' ? error['status'] : 0;
}
