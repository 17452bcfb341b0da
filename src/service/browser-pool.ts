import { PoolClosedError } from '../errors/index.js';
import { rejectUnknownOptions } from '../errors/invalid-option-error.js';
import { callListener, publish } from '../internal/diagnostics.js';
import { environment } from '../internal/environment.js';
import { raceAbort } from '../internal/race.js';
import { Authorization } from './authorization.js';
import { trackWork, workSettled } from './background.js';
import { checkBaseUrl, endpointPath } from './base-url.js';
import { checkAcquireRequest, checkPathSegment, checkReleaseOptions } from './checks.js';
import { holdLease, TICKET } from './held-leases.js';
import { sendAuthorized, type HttpRequest, type HttpResponse } from './http.js';
import { isOutcomeUnknown } from './outcome.js';
import type { PoolEvent } from './pool-events.js';
import type { AcquireOptions, BrowserPoolOptions, ReleaseOptions, RequestOptions } from './pool-options.js';
import type { ReleaseTicket } from './release-ticket.js';
import { giveBack } from './release.js';
import { readPoolRecord, readReplays } from './resources.js';
import { expectSuccess, isSuccess, readJson, responseError } from './responses.js';
import { sealSession } from './session.js';
import { sessionFault } from './session-fields.js';
import { readableSessionId } from './session-id.js';
import { OriginSockets } from './sockets.js';
import type { AcquireRequest, BrowserSession, PoolRecord, Replay } from './wire.js';

/** How long a plain request may take, in milliseconds. */
const REQUEST_TIMEOUT = 30_000;
/** How long past its own wait an acquire request is listened to, so that no grant is cut off. */
const ACQUIRE_GRACE = 15_000;
/** The same where the service decides how long to wait (interface: acquire_timeout_seconds). */
const UNKNOWN_WAIT = 60 * 60_000;
/** How long a browser that nobody took is tried to be given back. */
const ORPHAN_RELEASE_TIMEOUT = 30_000;

/** A pool of browsers at a service (interface: Endpoints). Nothing is sent before the first call. */
export class BrowserPool {
  /** Id or name of the pool. */
  readonly idOrName: string;
  /** Address of the service. */
  readonly baseUrl: string;

  readonly #url: URL;
  readonly #authorization: Authorization;
  readonly #sockets: OriginSockets;
  #closed: Promise<void> | undefined;

  /**
   * @param idOrName Id or name of the pool.
   * @throws InvalidOptionError when the pool, the address or the token is missing or not allowed.
   */
  constructor(idOrName: string, options: BrowserPoolOptions = {}) {
    rejectUnknownOptions(options, ['baseUrl', 'token'], 'BrowserPool');
    checkPathSegment(idOrName, 'pool');
    this.idOrName = idOrName;
    this.#url = checkBaseUrl(options.baseUrl ?? environment.baseUrl());
    this.baseUrl = this.#url.href;
    this.#authorization = new Authorization(options.token ?? environment.accessToken());
    this.#sockets = new OriginSockets(this.#url.origin);
  }

  /**
   * Asks once for a browser (interface: endpoint 2), and waits as long as the request says.
   *
   * @returns The session, or `null` when no browser became available.
   * @throws PoolServiceError, PoolConnectionError, PoolResponseError; the signal's reason after an abort.
   */
  async acquire(request: AcquireRequest = {}, options: AcquireOptions = {}): Promise<BrowserSession | null> {
    checkAcquireRequest(request);
    rejectUnknownOptions(options, ['signal', 'onEvent'], 'acquire');
    if (this.#closed) throw new PoolClosedError(this.#facts());
    options.signal?.throwIfAborted();
    const grant = this.#requestGrant(request, options);
    trackWork(this, grant);
    return raceAbort(grant, options.signal, (session) => {
      if (session) this.#giveBackOrphan(session.session_id, request, options);
    });
  }

  /**
   * Gives a leased browser back (beyond the given interface).
   *
   * @throws PoolServiceError with status 404 when the session is gone already.
   */
  async release(sessionId: string, options: ReleaseOptions = {}): Promise<void> {
    checkPathSegment(sessionId, 'sessionId');
    checkReleaseOptions(options);
    const { reuse = true, timeout = REQUEST_TIMEOUT, signal } = options;
    const path = this.#path('browser_pools', this.idOrName, 'release');
    const body = { session_id: sessionId, reuse };
    const response = await this.#send({ method: 'POST', path, body, timeout, signal });
    expectSuccess(response, this.#facts(sessionId));
  }

  /** Destroys all idle browsers of the pool; leased ones are not affected (interface: endpoint 1). */
  async flush(options: RequestOptions = {}): Promise<void> {
    rejectUnknownOptions(options, ['signal'], 'flush');
    const { signal } = options;
    const path = this.#path('browser_pools', this.idOrName, 'flush');
    const response = await this.#send({ method: 'POST', path, timeout: REQUEST_TIMEOUT, signal });
    expectSuccess(response, this.#facts());
  }

  /**
   * All replays of a session, those of earlier and later leases of the same browser included
   * (interface: endpoint 3).
   */
  async replays(sessionId: string, options: RequestOptions = {}): Promise<Replay[]> {
    rejectUnknownOptions(options, ['signal'], 'replays');
    const { signal } = options;
    checkPathSegment(sessionId, 'sessionId');
    const path = this.#path('browsers', sessionId, 'replays');
    const response = await this.#send({ method: 'GET', path, timeout: REQUEST_TIMEOUT, signal });
    const facts = this.#facts(sessionId);
    const replays = readReplays(readJson(response, facts));
    if (!replays) throw responseError('is no list of replays', response, facts);
    return replays;
  }

  /** The pool's own record: its counts and configuration (beyond the given interface). */
  async describe(options: RequestOptions = {}): Promise<PoolRecord> {
    rejectUnknownOptions(options, ['signal'], 'describe');
    const { signal } = options;
    const path = this.#path('browser_pools', this.idOrName);
    const response = await this.#send({ method: 'GET', path, timeout: REQUEST_TIMEOUT, signal });
    const record = readPoolRecord(readJson(response, this.#facts()));
    if (!record) throw responseError('is no pool record', response, this.#facts());
    return record;
  }

  /** Waits until nothing is owed to the service any more, then closes the sockets. Further calls are refused. */
  close(): Promise<void> {
    this.#closed ??= workSettled(this).then(() => this.#sockets.close());
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal The release of a session in writing, for when this process is at its end. */
  [TICKET](sessionId: string): ReleaseTicket | undefined {
    const token = this.#authorization.last;
    if (!token) return undefined;
    const url = new URL(this.#path('browser_pools', this.idOrName, 'release'), this.#url).href;
    return { url, token, body: { session_id: sessionId, reuse: false } };
  }

  /**
   * One acquire request, listened to until the service has answered, whether or not the caller still waits:
   * a grant that nobody hears is a lost lease.
   */
  async #requestGrant(request: AcquireRequest, options: AcquireOptions): Promise<BrowserSession | null> {
    const { acquire_timeout_seconds: wait } = request;
    const timeout = wait === undefined ? UNKNOWN_WAIT : wait * 1000 + ACQUIRE_GRACE;
    const path = this.#path('browser_pools', this.idOrName, 'acquire');
    try {
      const { signal: unsentSignal } = options;
      const response = await this.#send({ method: 'POST', path, body: request, timeout, unsentSignal });
      return response.status === 204 ? null : this.#readGrant(response, request, options);
    } catch (error) {
      if (isOutcomeUnknown(error)) {
        tell({ type: 'outcome-unknown', ...this.#aboutLease(request), error }, options.onEvent);
      }
      throw error;
    }
  }

  #readGrant(response: HttpResponse, request: AcquireRequest, options: AcquireOptions): BrowserSession {
    const sessionId = isSuccess(response) ? readableSessionId(response.body) : undefined;
    try {
      const json = readJson(response, this.#facts(sessionId));
      const fault = sessionFault(json);
      if (fault) throw responseError(fault, response, this.#facts(sessionId));
      return sealSession(json as Record<string, unknown>);
    } catch (error) {
      if (sessionId) this.#giveBackOrphan(sessionId, request, options);
      throw error;
    }
  }

  #giveBackOrphan(sessionId: string, request: AcquireRequest, { onEvent }: AcquireOptions): void {
    const pool = this.idOrName;
    tell({ type: 'grant-orphaned', ...this.#aboutLease(request), sessionId }, onEvent);
    const letGo = holdLease(this, sessionId);
    const released = giveBack(this, sessionId, { reuse: true, timeout: ORPHAN_RELEASE_TIMEOUT }).then(
      () => tell({ type: 'released', pool, sessionId, released: 'reused' }, onEvent),
      (error: Error) => tell({ type: 'release-failed', pool, sessionId, error }, onEvent),
    );
    trackWork(this, released.finally(letGo));
  }

  async #send(request: HttpRequest): Promise<HttpResponse> {
    return sendAuthorized(await this.#sockets.dispatcher(), this.#authorization, request);
  }

  #path(...segments: string[]): string {
    return endpointPath(this.#url, ...segments);
  }

  #facts(sessionId?: string) {
    return { pool: this.idOrName, sessionId };
  }

  #aboutLease({ name, tags }: AcquireRequest) {
    return { pool: this.idOrName, ...(name && { name }), ...(tags && { tags }) };
  }
}

/** To the caller's listener; without one to the diagnostics channel, so that nothing goes unseen. */
function tell(event: PoolEvent, listener: ((event: PoolEvent) => void) | undefined): void {
  callListener(listener ?? publish, event);
}
