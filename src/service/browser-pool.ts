import { PoolClosedError } from '../shared/service-errors.js';
import { rejectUnknownOptions } from '../shared/errors.js';
import { raceAbort } from '../shared/abort.js';
import { trackWork, workSettled } from './background.js';
import { checkAcquireRequest, checkPathSegment, checkReleaseOptions } from './checks.js';
import { TICKET } from './held-leases.js';
import { REQUEST_TIMEOUT, type HttpResponse } from './http.js';
import { giveBackOrphan, tellUnknownOutcome } from './lost-grants.js';
import { isOutcomeUnknown } from './outcome.js';
import type {
  AcquireOptions,
  BrowserPoolOptions,
  DownloadedReplay,
  DownloadOptions,
  ReleaseOptions,
  RequestOptions,
} from './pool-options.js';
import { countersOf, type PoolStats } from './pool-stats.js';
import type { ReleaseTicket } from './release-ticket.js';
import { listReplays, startReplay, stopReplay } from './replay-requests.js';
import { readPoolRecord } from './resources.js';
import { ServiceLink } from './service-link.js';
import { expectSuccess, isSuccess, readJson, responseError } from './responses.js';
import { sealSession } from './session.js';
import { sessionFault } from './session-fields.js';
import { readableSessionId } from './session-id.js';
import type { AcquireRequest, BrowserSession, PoolRecord, Replay, ReplayRequest } from './wire.js';

/** How long past its own wait an acquire request is listened to, so that no grant is cut off. */
const ACQUIRE_GRACE = 15_000;
/** The same where the service decides how long to wait (interface: acquire_timeout_seconds). */
const UNKNOWN_WAIT = 60 * 60_000;

/** Tells when a pool's first request is on its way. */
export const CONNECTED: unique symbol = Symbol('pooled-browser.connected');

/** A pool of browsers at a service (interface: Endpoints). Nothing is sent before the first call. */
export class BrowserPool {
  /** Id or name of the pool. */
  readonly idOrName: string;
  /** Address of the service. */
  readonly baseUrl: string;

  readonly #link: ServiceLink;
  #closed: Promise<void> | undefined;

  /**
   * @param idOrName Id or name of the pool.
   * @throws InvalidOptionError when the pool, the address or the token is missing or not allowed.
   */
  constructor(idOrName: string, options: BrowserPoolOptions = {}) {
    rejectUnknownOptions(options, ['baseUrl', 'token'], 'BrowserPool');
    checkPathSegment(idOrName, 'pool');
    this.idOrName = idOrName;
    this.#link = new ServiceLink(options);
    this.baseUrl = this.#link.url.href;
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
      if (session) giveBackOrphan(this, session.session_id, request, options.onEvent);
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
    const path = this.#link.path('browser_pools', this.idOrName, 'release');
    const body = { session_id: sessionId, reuse };
    const facts = this.#facts(sessionId);
    const response = await this.#link.send({ method: 'POST', path, body, facts, timeout, signal });
    expectSuccess(response, facts);
  }

  /** Destroys all idle browsers of the pool; leased ones are not affected (interface: endpoint 1). */
  async flush(options: RequestOptions = {}): Promise<void> {
    rejectUnknownOptions(options, ['signal'], 'flush');
    const { signal } = options;
    const path = this.#link.path('browser_pools', this.idOrName, 'flush');
    const facts = this.#facts();
    const response = await this.#link.send({ method: 'POST', path, facts, timeout: REQUEST_TIMEOUT, signal });
    expectSuccess(response, facts);
  }

  /**
   * All replays of a session, those of earlier and later leases of the same browser included
   * (interface: endpoint 3).
   */
  async replays(sessionId: string, options: RequestOptions = {}): Promise<Replay[]> {
    return listReplays(this.#link, this.#facts(sessionId), options);
  }

  /**
   * Starts a recording of a leased browser (beyond the given interface). It ends with `stopReplay`, when its time is
   * over, or with the session.
   *
   * @throws PoolServiceError where the plan, or a browser without a screen (headless), does not allow it.
   */
  async startReplay(
    sessionId: string,
    request: ReplayRequest = {},
    options: RequestOptions = {},
  ): Promise<Replay> {
    return startReplay(this.#link, this.#facts(sessionId), request, options);
  }

  /** Ends a recording (beyond the given interface). Its film is written some seconds later. */
  async stopReplay(sessionId: string, replayId: string, options: RequestOptions = {}): Promise<void> {
    return stopReplay(this.#link, this.#facts(sessionId), replayId, options);
  }

  /**
   * Downloads the film of a recording (beyond the given interface), waits for it where it is still being written, and
   * puts it in place once it is whole. Also after the lease: recordings outlive their sessions.
   *
   * @param path Where to write it; a file that is there is replaced.
   * @throws ReplayNotReadyError when it was not written in time; PoolServiceError, PoolConnectionError,
   *   PoolResponseError; the file system's own errors, what `onProgress` threw, the signal's reason. After any of them
   *   nothing is left at `path`, but what was there before.
   */
  async downloadReplay(
    sessionId: string,
    replayId: string,
    path: string,
    options: DownloadOptions = {},
  ): Promise<DownloadedReplay> {
    // Few processes download: what it takes is imported then.
    const { downloadReplay } = await import('./download-replay.js');
    return downloadReplay(this.#link, this.#facts(sessionId), { replayId, path, ...options });
  }

  /** The pool's own record: its counts and configuration (beyond the given interface). */
  async describe(options: RequestOptions = {}): Promise<PoolRecord> {
    rejectUnknownOptions(options, ['signal'], 'describe');
    const { signal } = options;
    const path = this.#link.path('browser_pools', this.idOrName);
    const facts = this.#facts();
    const response = await this.#link.send({ method: 'GET', path, facts, timeout: REQUEST_TIMEOUT, signal });
    const record = readPoolRecord(readJson(response, facts));
    if (!record) throw responseError('is no pool record', response, facts);
    return record;
  }

  /** What this process has done with the pool so far: calls, requests, leases, waits (beyond the given interface). */
  stats(): PoolStats {
    return countersOf(this).snapshot();
  }

  /** Waits until nothing is owed to the service any more, then closes the sockets. Further calls are refused. */
  close(): Promise<void> {
    this.#closed ??= workSettled(this).then(() => this.#link.close());
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Resolves once the first request to the service is on its way. */
  [CONNECTED](): Promise<void> {
    return this.#link.connected();
  }

  /** @internal The release of a session in writing, for when this process is at its end. */
  [TICKET](sessionId: string): ReleaseTicket | undefined {
    const token = this.#link.lastToken;
    if (!token) return undefined;
    const url = new URL(this.#link.path('browser_pools', this.idOrName, 'release'), this.#link.url).href;
    return { url, token, body: { session_id: sessionId, reuse: false } };
  }

  /**
   * One acquire request, listened to until the service has answered, whether or not the caller still waits:
   * a grant that nobody hears is a lost lease.
   */
  async #requestGrant(request: AcquireRequest, options: AcquireOptions): Promise<BrowserSession | null> {
    const { acquire_timeout_seconds: wait } = request;
    const timeout = wait === undefined ? UNKNOWN_WAIT : wait * 1000 + ACQUIRE_GRACE;
    const path = this.#link.path('browser_pools', this.idOrName, 'acquire');
    const facts = this.#facts();
    const sent = { method: 'POST', path, body: request, facts, timeout } as const;
    try {
      const response = await this.#link.send({ ...sent, unsentSignal: options.signal });
      const session = response.status === 204 ? null : this.#readGrant(response, request, options);
      countersOf(this).countRequest(session ? 'granted' : 'empty');
      return session;
    } catch (error) {
      const isUnknown = isOutcomeUnknown(error);
      // One that was given up before it was sent is none.
      if (error !== options.signal?.reason) countersOf(this).countRequest(isUnknown ? 'unknown' : 'failed');
      if (isUnknown) tellUnknownOutcome(this.idOrName, request, error, options.onEvent);
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
      if (sessionId) giveBackOrphan(this, sessionId, request, options.onEvent);
      throw error;
    }
  }

  #facts<Id extends string | undefined = undefined>(sessionId?: Id) {
    return { pool: this.idOrName, sessionId: sessionId as Id };
  }
}
