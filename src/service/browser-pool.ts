import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { readOption, readOptions } from '../shared/options.js';
import { PoolClosedError } from '../shared/service-errors.js';
import type { DownloadedReplay } from './download-replay.js';
import { callEndpoint } from './endpoints.js';
import { requestGrant } from './grants.js';
import { HeldLeases } from './held-leases.js';
import { HttpClient, REQUEST_TIMEOUT, type HttpRequest, type HttpResponse } from './http.js';
import type { MarkedLease } from './ownership.js';
import { BackgroundWork, INTERNALS, type PoolInternals } from './pool-internals.js';
import {
  acquireOptions,
  acquireRequest,
  downloadOptions,
  pathSegment,
  poolOptions,
  releaseOptions,
  replayRequest,
  requestOptions,
  type AcquireOptions,
  type AcquireRequest,
  type BrowserPoolOptions,
  type DownloadOptions,
  type EndpointOptions,
  type EndpointRequest,
  type ReleaseOptions,
  type ReplayRequest,
  type RequestOptions,
} from './pool-options.js';
import { PoolCounters, type PoolStats } from './pool-stats.js';
import type { ReleaseTicket } from './release-helper.js';
import type { Releaser } from './release.js';
import { expectSuccess, readObject, readReplays } from './responses.js';
import { Service, serviceUrl } from './service.js';
import { poolSchema, replaySchema, type BrowserSession, type PoolRecord, type Replay } from './wire.js';

const NO_TOKEN = 'The access token is missing. Pass the option token, or set BROWSER_POOL_ACCESS_TOKEN.';

/** A pool of browsers at a service (API: Endpoints). The constructor sends no request. */
export class BrowserPool {
  /** Id or name of the pool. */
  readonly idOrName: string;
  /** Address of the service; `local:<pool>` for browsers of this machine. */
  readonly baseUrl: string;
  /** @internal */
  readonly [INTERNALS]: PoolInternals;

  readonly #client: HttpClient;
  readonly #endpoints: EndpointOptions;
  #closed: Promise<void> | undefined;

  /**
   * @param idOrName Id or name of the pool.
   * @throws InvalidOptionError if the pool, the address or the token is missing or not allowed.
   */
  constructor(idOrName: string, options: BrowserPoolOptions = {}) {
    const { baseUrl, token, local, endpoints } = readOptions(poolOptions, options, 'BrowserPool');
    this.idOrName = readOption(pathSegment(), 'pool', idOrName);
    const url = serviceUrl(baseUrl ?? environment.baseUrl(), idOrName);
    const service = Service.at(url);
    if (local) service.local = local;
    const given = token ?? readOption(poolOptions.token, 'token', environment.accessToken());
    const accessToken = url.protocol === 'local:' ? () => service.localToken() : given;
    if (accessToken === undefined) throw new InvalidOptionError('token', NO_TOKEN);
    const client = new HttpClient(url, accessToken);
    this.#client = client;
    this.#endpoints = endpoints ?? {};
    this.baseUrl = url.href;
    const release: Releaser['release'] = (sessionId, options) => this.release(sessionId, options);
    this[INTERNALS] = {
      client,
      counters: new PoolCounters(),
      background: new BackgroundWork(),
      held: new HeldLeases({ idOrName, client, release }, (lease) => this.#releaseTicket(lease)),
      hasOwnRelease: endpoints?.release !== undefined,
    };
  }

  /**
   * Sends one acquire request (API: endpoint 2).
   *
   * @returns The session, or `null` if no browser became available.
   * @throws PoolServiceError, PoolConnectionError, PoolResponseError; the signal's reason after an abort.
   */
  async acquire(request: AcquireRequest = {}, options: AcquireOptions = {}): Promise<BrowserSession | null> {
    readOptions(acquireRequest, request, 'acquire');
    const settings = readOptions(acquireOptions, options, 'acquire');
    if (this.#closed) throw new PoolClosedError(this.#facts());
    settings.signal?.throwIfAborted();
    return requestGrant(this, request, settings);
  }

  /**
   * Sends one release request (extension). After `PoolConnectionError` (`ERR_POOL_NO_RESPONSE`), do not repeat a
   * request with `reuse`: the session may already belong to another lease.
   *
   * @throws PoolServiceError with status 404 if the session no longer exists.
   */
  async release(sessionId: string, options: ReleaseOptions = {}): Promise<void> {
    readOption(pathSegment(), 'sessionId', sessionId);
    const { reuse, timeout, signal } = readOptions(releaseOptions, options, 'release');
    const { release } = this.#endpoints;
    if (release) return void (await this.#call(release, { sessionId, reuse }, { timeout, signal }));
    const body = { session_id: sessionId, reuse };
    await this.#send('POST', [...this.#path, 'release'], { sessionId, body, timeout, signal });
  }

  /** Destroys all idle browsers of the pool; leased browsers are not affected (API: endpoint 1). */
  async flush(options: RequestOptions = {}): Promise<void> {
    const { signal } = readOptions(requestOptions, options, 'flush');
    await this.#send('POST', [...this.#path, 'flush'], { signal });
  }

  /** Lists all replays of a session, including those of earlier and later leases of the same browser (API: endpoint 3). */
  async replays(sessionId: string, options: RequestOptions = {}): Promise<Replay[]> {
    const { signal } = readOptions(requestOptions, options, 'replays');
    const response = await this.#send('GET', this.#replaysPath(sessionId), { sessionId, signal });
    return readReplays(response, this.#facts(sessionId));
  }

  /**
   * Starts a recording of a leased browser (extension). The recording ends with `stopReplay`, after its maximum
   * duration, or with the session.
   *
   * @throws PoolServiceError if the service can't record this browser, for example because it is headless.
   */
  async startReplay(
    sessionId: string,
    request: ReplayRequest = {},
    options: RequestOptions = {},
  ): Promise<Replay> {
    readOptions(replayRequest, request, 'startReplay');
    const { signal } = readOptions(requestOptions, options, 'startReplay');
    const path = this.#replaysPath(sessionId);
    const { startReplay } = this.#endpoints;
    if (startReplay) return this.#call(startReplay, { sessionId, ...request }, { signal });
    const response = await this.#send('POST', path, { sessionId, body: request, signal });
    return readObject(replaySchema, response, this.#facts(sessionId));
  }

  /** Stops a recording (extension). The service writes the video some seconds later. */
  async stopReplay(sessionId: string, replayId: string, options: RequestOptions = {}): Promise<void> {
    const path = [...this.#replaysPath(sessionId), readOption(pathSegment(), 'replayId', replayId), 'stop'];
    const { signal } = readOptions(requestOptions, options, 'stopReplay');
    const { stopReplay } = this.#endpoints;
    if (stopReplay) return void (await this.#call(stopReplay, { sessionId, replayId }, { signal }));
    await this.#send('POST', path, { sessionId, signal });
  }

  /**
   * Downloads the video of a recording (extension), after waiting until the service has written it. Recordings outlive
   * their sessions.
   *
   * @param path Path of the file; an existing file is replaced when the download is complete.
   * @throws ReplayNotReadyError after the option `timeout`; PoolServiceError, PoolConnectionError, PoolResponseError;
   *   an error of the file system; the error that `onProgress` threw; the signal's reason. No partial file is left.
   */
  async downloadReplay(
    sessionId: string,
    replayId: string,
    path: string,
    options: DownloadOptions = {},
  ): Promise<DownloadedReplay> {
    const settings = readOptions(downloadOptions, options, 'downloadReplay');
    if (typeof path !== 'string' || path === '')
      throw new InvalidOptionError('path', 'path must be the path of the file to write.');
    const segments = [...this.#replaysPath(sessionId), readOption(pathSegment(), 'replayId', replayId)];
    // Loaded on demand, because few processes download a video.
    const { downloadReplay } = await import('./download-replay.js');
    const request = {
      method: 'GET',
      path: this.#client.path(...segments),
      facts: this.#facts(sessionId),
    } as const;
    return downloadReplay(this.#client, request, { replayId, path, ...settings });
  }

  /** Returns the pool's record: its counts and its configuration (extension). */
  async describe(options: RequestOptions = {}): Promise<PoolRecord> {
    const { signal } = readOptions(requestOptions, options, 'describe');
    const response = await this.#send('GET', this.#path, { signal });
    return readObject(poolSchema, response, this.#facts()) as PoolRecord;
  }

  /** Returns the counts of this process for this pool: calls, requests, leases and waiting times. */
  stats(): PoolStats {
    return this[INTERNALS].counters.snapshot();
  }

  /** Waits for all releases and open acquire requests, then closes the connections. Later calls are refused. */
  close(): Promise<void> {
    this.#closed ??= this[INTERNALS].background.settled().then(() => this.#client.close());
    return this.#closed;
  }

  /** Calls `close()`, at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #path(): string[] {
    return ['browser_pools', this.idOrName];
  }

  #replaysPath(sessionId: string): string[] {
    return ['browsers', readOption(pathSegment(), 'sessionId', sessionId), 'replays'];
  }

  async #send(
    method: HttpRequest['method'],
    path: string[],
    request: Pick<HttpRequest, 'body' | 'signal'> & { sessionId?: string; timeout?: number },
  ): Promise<HttpResponse> {
    const { sessionId, timeout = REQUEST_TIMEOUT, body, signal } = request;
    const facts = this.#facts(sessionId);
    const sent = { method, path: this.#client.path(...path), body, facts, timeout, signal };
    return expectSuccess(await this.#client.send(sent), facts);
  }

  #call<Request extends object, Result>(
    endpoint: (request: EndpointRequest & Request) => Result | Promise<Result>,
    request: Request & { sessionId: string },
    options: { signal?: AbortSignal | undefined; timeout?: number },
  ): Promise<Result> {
    return callEndpoint(this.#client, endpoint, { pool: this.idOrName, ...request }, options);
  }

  /** The default release request, for another process. A function of the user can't run there. */
  #releaseTicket({ sessionId, mark }: MarkedLease): ReleaseTicket | undefined {
    if (this.#endpoints.release) return undefined;
    const releaseUrl = this.#client.urlOf(...this.#path, 'release');
    return { sessionId, releaseUrl, sessionUrl: this.#client.urlOf('browsers', sessionId), mark };
  }

  #facts<Id extends string | undefined = undefined>(sessionId?: Id) {
    return { pool: this.idOrName, sessionId: sessionId as Id };
  }
}

/** Returns the named pool at the service of the environment. Calls with the same token share the pool. */
export function namedPool(idOrName: string): BrowserPool {
  const token = environment.accessToken();
  const { namedPools } = Service.at(serviceUrl(environment.baseUrl(), idOrName));
  const known = namedPools.get(idOrName);
  if (known && known.token === token) return known.pool as BrowserPool;
  const pool = new BrowserPool(idOrName);
  namedPools.set(idOrName, { pool, token });
  return pool;
}
