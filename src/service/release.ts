import { duration, InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { withRetries } from '../shared/retry.js';
import {
  PoolClosedError,
  PoolConnectionError,
  PoolServiceError,
  ReleaseError,
} from '../shared/service-errors.js';
import type { HttpClient } from './http.js';
import { bearsMark, type MarkedLease } from './ownership.js';
import type { ReleaseOptions } from './pool-options.js';
import { readJson } from './responses.js';
import { meaningOf } from './status.js';

/** Maximum part of `timeout` for one attempt, so that an unanswered request leaves time for another one. */
const LONGEST_PART = 1 / 2;
/** Shortest timeout of an attempt in ms, if there is time. */
const SHORTEST_ATTEMPT = 1000;

/** The part of a pool that releases browsers. */
export interface Releaser {
  readonly idOrName: string;
  readonly client: HttpClient;
  release(sessionId: string, options: ReleaseOptions): Promise<void>;
}

export interface ReleaseRequest {
  /** `true`: the browser returns to the pool, and the same session id may immediately belong to another lease. */
  reuse: boolean;
  /** Milliseconds for all attempts. */
  timeout: number;
}

/**
 * Releases a browser: repeats the request until the service confirms it, or until `timeout` ms have elapsed. 404 means
 * that the session no longer exists.
 *
 * After a request with `reuse` that may have been processed, the session may belong to another lease. The request is
 * then repeated only if the session still has the mark of our lease. If a service returns no marks, the request is
 * repeated after an error response, and not repeated after a missing response.
 *
 * @throws ReleaseError with the id of the session that is, or may be, still leased.
 */
export function releaseWithRetry(
  pool: Releaser,
  lease: MarkedLease,
  request: ReleaseRequest,
): Promise<'reused' | 'destroyed'> {
  return new Release(pool, lease, request).run();
}

/** Ends the attempts: the service may have processed the release, and the present owner of the session is unknown. */
class OwnerUnknown extends Error {}

class Release {
  readonly #pool: Releaser;
  readonly #lease: MarkedLease;
  readonly #request: ReleaseRequest;
  readonly #started = performance.now();
  /** The remaining doubt after the failed requests so far. */
  #doubt: 'none' | 'failed' | 'unknown' = 'none';
  #lastError: Error | undefined;

  constructor(pool: Releaser, lease: MarkedLease, request: ReleaseRequest) {
    this.#pool = pool;
    this.#lease = lease;
    this.#request = request;
  }

  async run(): Promise<'reused' | 'destroyed'> {
    const { reuse, timeout } = this.#request;
    try {
      await withRetries(() => this.#attempt(), {
        retries: Number.POSITIVE_INFINITY,
        maxRetryTime: timeout,
        minTimeout: 100,
        maxTimeout: 2000,
        randomize: true,
        shouldRetry: ({ error }) => isTransient(error),
      });
      return reuse ? 'reused' : 'destroyed';
    } catch (error) {
      if (statusOf(error) === 404) return 'destroyed';
      throw this.#explain(error as Error);
    }
  }

  async #attempt(): Promise<void> {
    const { reuse } = this.#request;
    // A request that the deadline interrupts would only add doubt.
    const needed = Math.min(SHORTEST_ATTEMPT, this.#request.timeout * LONGEST_PART);
    if (this.#lastError && this.#timeLeft < needed) throw this.#lastError;
    if (reuse && this.#doubt !== 'none' && !(await this.#isStillOurs())) return;
    try {
      await this.#pool.release(this.#lease.sessionId, { reuse, timeout: this.#attemptTimeout });
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome === 'unknown' || this.#doubt === 'none') this.#doubt = outcome;
      this.#lastError = error as Error;
      throw error;
    }
  }

  async #isStillOurs(): Promise<boolean> {
    const { mark, isMarkShown } = this.#lease;
    const record = mark && (await this.#readSession());
    if (mark && record !== undefined) {
      if (bearsMark(record, mark)) return true;
      if (isMarkShown) return false;
    } else if (this.#doubt === 'failed') return true;
    this.#doubt = 'unknown';
    throw new OwnerUnknown('The service does not show to which lease the session belongs.');
  }

  /** `GET /browsers/{id}` (extension). Resolves to `undefined` if the service has no such path or no such session. */
  async #readSession(): Promise<unknown> {
    const { client } = this.#pool;
    const { sessionId } = this.#lease;
    const path = client.path('browsers', sessionId);
    const facts = { pool: this.#pool.idOrName, sessionId };
    try {
      const response = await client.send({ method: 'GET', path, facts, timeout: this.#attemptTimeout });
      return readJson(response, facts);
    } catch (error) {
      if (error instanceof PoolServiceError && meaningOf(error.status).isAbsent) return undefined;
      throw new Error('The service did not show the session.', { cause: error });
    }
  }

  get #attemptTimeout(): number {
    return Math.min(this.#timeLeft, Math.max(SHORTEST_ATTEMPT, this.#request.timeout * LONGEST_PART));
  }

  get #timeLeft(): number {
    return Math.max(0, this.#request.timeout - (performance.now() - this.#started));
  }

  #explain(cause: Error): ReleaseError {
    const { sessionId } = this.#lease;
    const pool = this.#pool.idOrName;
    const elapsed = performance.now() - this.#started;
    const facts = { pool, sessionId, elapsed, cause };
    if (this.#doubt === 'unknown') {
      const message =
        `It is unknown whether session ${sessionId} of pool ${pool} was released: the service did not answer. ` +
        'If it was not, it stays leased until its inactivity timeout.';
      return new ReleaseError(message, 'unknown', facts);
    }
    const message =
      `Session ${sessionId} of pool ${pool} could not be released within ${duration(this.#request.timeout)}. ` +
      'It stays leased until its inactivity timeout.';
    return new ReleaseError(message, 'failed', facts);
  }
}

/**
 * The meaning of a failed request: the browser is still leased (`none`); the service says so (`failed`); or it may be
 * released (`unknown`).
 */
function outcomeOf(error: unknown): 'none' | 'failed' | 'unknown' {
  const status = statusOf(error);
  if (status !== undefined) return meaningOf(status).release;
  if (error instanceof InvalidOptionError || error instanceof PoolClosedError) return 'none';
  return error instanceof PoolConnectionError && error.code === 'ERR_POOL_UNREACHABLE' ? 'none' : 'unknown';
}

function isTransient(error: unknown): boolean {
  if (error instanceof InvalidOptionError || error instanceof PoolClosedError) return false;
  if (error instanceof OwnerUnknown) return false;
  const status = statusOf(error);
  return status === undefined || meaningOf(status).isTransient;
}

/** Also for errors of functions of the user that have a `status`. */
function statusOf(error: unknown): number | undefined {
  return isRecord(error) && typeof error['status'] === 'number' ? error['status'] : undefined;
}
