import { LinkedAbort } from '../shared/abort.js';
import { environment } from '../shared/environment.js';
import { callSite, InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { lazy } from '../shared/lazy.js';
import { readOption, readOptions, type Checks } from '../shared/options.js';
import { hideProxy } from '../shared/network.js';
import { namedPools } from '../shared/process-state.js';
import { hideHeaders, hideOwnSecret, hideParameters } from '../shared/redact.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { callListener, publish } from '../shared/telemetry.js';
import type { BrowserService, Replay, ReplayRequest, ServiceRequest } from '../services/browser-service.js';
import { checkService, requestFactsOf, verifyLease } from '../services/check-service.js';
import type { SendOptions } from './client.js';
import type { DownloadedReplay } from './download-replay.js';
import { leaseMark } from '../services/lease-mark.js';
import { addressOf, serviceOfEnvironment, serviceUrl, tokenOf } from './named-service.js';
import { INTERNALS, type PoolSettings } from './pool-settings.js';
import {
  acquireChecks,
  acquireRequestChecks,
  downloadChecks,
  pathSegment,
  poolChecks,
  releaseChecks,
  replayRequestChecks,
  requestChecks,
  type AcquireOptions,
  type BrowserPoolOptions,
  type DownloadOptions,
  type LocalBrowserKind,
  type ReleaseOptions,
  type RequestOptions,
} from './pool-options.js';
import type { HttpResponse } from '../net/response.js';
import type { AcquireRequest, BrowserSession, PoolRecord } from '../services/kernel-api.js';

const loadRequests = lazy(async () => {
  const [core, grant, response] = await Promise.all([
    import('./pool-core.js'),
    import('./grant.js'),
    import('../net/response.js'),
  ]);
  return { ...core, ...grant, ...response };
});

/** The service of browsers of this machine, which start with the flags that a lease needs. */
function ofThisMachine(service: BrowserService, browser: LocalBrowserKind = 'chromium'): BrowserService {
  const local: BrowserService = {
    ...service,
    name: 'local',
    sessionOptions: 'browsers of this machine have nothing like it',
    acquire: (lease) => {
      const request = service.acquire(lease);
      return request && lease.noUdp ? { ...request, body: { ...request.body, no_udp: true } } : request;
    },
  };
  if (browser === 'chromium') return local;
  // Its own context can't be cleared: the library opens the URL of the lease where its page is.
  return {
    ...local,
    acquire: (lease) => service.acquire({ ...lease, startUrl: undefined }),
    protocols: ['bidi'],
  };
}

/** A pool of browsers at a service. The constructor sends no request. */
export class BrowserPool<Session extends object = BrowserSession> {
  /** Id or name of the pool. */
  readonly idOrName: string;
  /** Address of the service; `local:<pool>` for browsers of this machine. */
  readonly baseUrl: string;
  /** @internal A function, because `inspect` must not show the token. */
  readonly [INTERNALS]: () => PoolSettings<Session>;

  readonly #service: BrowserService;
  #closed: Promise<void> | undefined;

  /**
   * @param idOrName Id or name of the pool.
   * @throws InvalidOptionError if the pool, the address or the token is missing or not allowed.
   */
  constructor(idOrName: string, options: BrowserPoolOptions<Session> = {}) {
    const given = readOptions(poolChecks, options, 'BrowserPool');
    const { insecure, local, proxy, ca } = given;
    if (given.service !== undefined) checkService(given.service);
    this.idOrName = readOption(pathSegment(), 'pool', idOrName);
    const { service, baseUrl } = given.service
      ? { service: given.service, baseUrl: given.baseUrl ?? addressOf(given.service) }
      : serviceOfEnvironment(given.baseUrl);
    const url = serviceUrl(baseUrl, idOrName, { insecure });
    const used: BrowserService = url.protocol === 'local:' ? ofThisMachine(service, local?.browser) : service;
    // The caller names the type of the sessions of the environment's service.
    const typed = used as BrowserService<Session>;
    const token = given.token ?? tokenOf(service, url);
    if (typeof token === 'string') hideOwnSecret(token);
    this.baseUrl = url.href;
    this.#service = used;
    hideParameters(service.secretParameters ?? []);
    hideHeaders(service.headers ?? {});
    if (proxy) hideProxy(proxy);
    const network = { proxy, ca };
    const limit = given.limit ?? service.limit ?? Number.POSITIVE_INFINITY;
    const settings = { service: typed, url, token, limit, insecure, local, network };
    this[INTERNALS] = () => settings;
  }

  /**
   * Sends one acquire request. The caller must release the browser.
   *
   * @returns The session, or `null` if no browser became available.
   * @throws PoolServiceError, PoolConnectionError, PoolResponseError; the signal's reason after an abort.
   */
  async acquire(request: AcquireRequest = {}, options: AcquireOptions = {}): Promise<Session | null> {
    return callSite()(this.#acquire(request, options));
  }

  async #acquire(request: AcquireRequest, options: AcquireOptions): Promise<Session | null> {
    const {
      acquire_timeout_seconds: wait,
      name,
      tags,
      start_url: startUrl,
    } = readOptions(acquireRequestChecks, request, 'acquire');
    const { signal, onEvent, owner } = readOptions(acquireChecks, options, 'acquire');
    if (startUrl !== undefined && !requestFactsOf(this.#service).opensStartUrl) {
      const message = `The service ${this.#service.name} opens no URL. Use leaseBrowser with startUrl: it opens the URL after it has connected.`;
      throw new InvalidOptionError('start_url', message, this.#facts());
    }
    verifyLease(this.#service, { name, tags }, this.idOrName);
    if (this.#closed) throw new PoolClosedError(this.#facts());
    const mark = owner ? leaseMark() : undefined;
    const { requestGrant, coreOf } = await loadRequests();
    const pool = coreOf(this);
    const abort = new LinkedAbort(signal);
    const endCall = pool.beginCall((error) => abort.abort(error));
    const outcome = await requestGrant({
      pool,
      wanted: { name, tags, startUrl, wait, mark, keepAlive: true },
      signal: abort.signal,
      // Without a listener, the events are published on the diagnostics channel, so that none is lost.
      emit: (event) => callListener(onEvent ?? publish, event),
    }).finally(() => {
      endCall();
      abort.dispose();
    });
    if (outcome.kind === 'granted') return outcome.granted.grant.session;
    if (outcome.kind === 'none') return null;
    throw outcome.error;
  }

  /**
   * Sends one release request. After `PoolConnectionError` (`ERR_POOL_NO_RESPONSE`), do not repeat a request with `reuse`:
   * the session may already belong to another lease.
   *
   * @throws PoolServiceError with status 404 if the session no longer exists.
   */
  async release(sessionId: string, options: ReleaseOptions = {}): Promise<void> {
    const { reuse, ...how } = this.#read(releaseChecks, options, 'release', sessionId);
    const request = this.#service.release(sessionId, { pool: this.idOrName, reuse });
    if (request) await this.#send(request, how);
  }

  /** Destroys all idle browsers of the pool; leased browsers are not affected. */
  async flush(options: RequestOptions = {}): Promise<void> {
    const { signal } = readOptions(requestChecks, options, 'flush');
    const flush = this.#supported(this.#service.pool?.flush, 'no request that destroys idle browsers');
    await this.#send(flush(this.idOrName), { facts: this.#facts(), signal });
  }

  /** Lists the replays of a session, of all its leases. */
  async replays(sessionId: string, options: RequestOptions = {}): Promise<Replay[]> {
    const how = this.#read(requestChecks, options, 'replays', sessionId);
    const { list, read, session } = this.#supported(this.#service.replays, 'no recordings');
    const all = await this.#ask(list(sessionId), how, (json) => read(json, sessionId));
    const isIncomplete = session && all.some(({ finished_at }) => finished_at === undefined);
    // The links do not depend on this request.
    const more =
      isIncomplete && (await this.#ask(session.request(sessionId), how, session.read).catch(() => undefined));
    how.signal?.throwIfAborted();
    return all.map((replay) => this.#withAccess({ ...more, ...replay }));
  }

  /**
   * Starts a recording of a leased browser. The recording ends with `stopReplay`, after its maximum duration, or with the
   * session.
   *
   * @throws PoolServiceError if the service can't record this browser, for example because it is headless.
   */
  async startReplay(
    sessionId: string,
    request: ReplayRequest = {},
    options: RequestOptions = {},
  ): Promise<Replay> {
    const how = this.#read(requestChecks, options, 'startReplay', sessionId);
    const recording = readOptions(replayRequestChecks, request, 'startReplay');
    const start = this.#supported(this.#service.replays?.start, 'no request that starts a recording');
    return this.#withAccess(await this.#ask(start(sessionId, recording), how, startedReplay));
  }

  /** Stops a recording. The service writes the video some seconds later. */
  async stopReplay(sessionId: string, replayId: string, options: RequestOptions = {}): Promise<void> {
    const how = this.#read(requestChecks, options, 'stopReplay', sessionId);
    const replay = readOption(pathSegment(), 'replayId', replayId);
    const stop = this.#supported(this.#service.replays?.stop, 'no request that stops a recording');
    await this.#send(stop(sessionId, replay), how);
  }

  /**
   * Deletes a recording that has ended, at a service whose API can: Anchor.
   *
   * @throws PoolServiceError with status 404 if there is no such recording.
   */
  async deleteReplay(sessionId: string, replayId: string, options: RequestOptions = {}): Promise<void> {
    const how = this.#read(requestChecks, options, 'deleteReplay', sessionId);
    const replay = readOption(pathSegment(), 'replayId', replayId);
    const remove = this.#supported(this.#service.replays?.delete, 'no request that deletes a recording');
    await this.#send(remove(sessionId, replay), how);
  }

  /**
   * Downloads the video of a recording, when the service has written it. Recordings outlive their sessions.
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
    const how = this.#read(downloadChecks, options, 'downloadReplay', sessionId);
    if (typeof path !== 'string' || path === '')
      throw new InvalidOptionError('path', 'path must be the path of the file to write.');
    const replay = readOption(pathSegment(), 'replayId', replayId);
    const video = this.#supported(this.#service.replays?.video, 'no request that downloads a video');
    // Loaded on demand, because few processes download a video.
    const { downloadReplay } = await import('./download-replay.js');
    const { coreOf } = await loadRequests();
    return downloadReplay(coreOf(this).client, video(sessionId, replay), { ...how, replayId, path });
  }

  /** Returns the pool's record: its counts and its configuration. */
  async describe(options: RequestOptions = {}): Promise<PoolRecord> {
    const { signal } = readOptions(requestChecks, options, 'describe');
    const { pool } = this.#service;
    const describe = this.#supported(pool?.describe, 'no record of a pool');
    const read = this.#supported(pool?.read, 'no record of a pool');
    return this.#ask(describe(this.idOrName), { facts: this.#facts(), signal }, read);
  }

  /**
   * Ends the running calls with `PoolClosedError`, and releases their browsers. A browser that an
   * open acquire request leases later is released, too. Waits for all of that, then closes the connections: without an
   * answer of the service, as long as a request may wait. Later calls are refused. Sessions that `acquire()` has returned stay leased.
   */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  /** Calls `close()`, at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { coreOf } = await loadRequests();
    await coreOf(this).close();
  }

  async #send(request: ServiceRequest, how: SendOptions): Promise<HttpResponse> {
    const { coreOf, expectSuccess } = await loadRequests();
    return expectSuccess(await coreOf(this).client.send(request, how), how.facts);
  }

  async #ask<T>(request: ServiceRequest, how: SendOptions, read: (json: unknown) => T): Promise<T> {
    const { coreOf, readAs } = await loadRequests();
    return readAs(await coreOf(this).client.send(request, how), how.facts, read);
  }

  #read<C extends Checks>(checks: C, options: unknown, caller: string, sessionId: string) {
    const settings = readOptions(checks, options, caller);
    const facts = { ...this.#facts(), sessionId: readOption(pathSegment(), 'sessionId', sessionId) };
    return { ...settings, facts };
  }

  /** Throws if the service lacks what a method needs. */
  #supported<T>(part: T | undefined, lack: string): T {
    if (part !== undefined) return part;
    const message = `The service ${this.#service.name} has ${lack}.`;
    throw new InvalidOptionError('service', message, this.#facts());
  }

  /** Adds what opening the link needs. */
  #withAccess(replay: Replay): Replay {
    const access = this.#service.replays?.access;
    return replay.replay_view_url === undefined || access === undefined ? replay : { ...replay, access };
  }

  #facts() {
    return { pool: this.idOrName };
  }
}

/** The fields of a recording that this library reads. */
const REPLAY_TEXTS = ['replay_id', 'started_at', 'finished_at', 'replay_view_url'];

/** The recording of the response to a request that starts one. A field without a value, or of a wrong type, counts as missing. */
function startedReplay(json: unknown): Replay {
  if (!isRecord(json)) throw new Error('is not a JSON object');
  const isGiven = ([name, value]: [string, unknown]) =>
    REPLAY_TEXTS.includes(name) ? typeof value === 'string' : value !== null;
  return Object.fromEntries(Object.entries(json).filter(isGiven));
}

/** Returns the named pool at the service of the environment. Calls with the same token share the pool. */
export function namedPool(idOrName: string): BrowserPool {
  const { service, baseUrl = '' } = serviceOfEnvironment();
  const token = environment.accessToken() ?? environment.firstOf(service.usualToken?.variables ?? [])?.[1];
  const key = [idOrName, service.name, baseUrl].join(' ');
  const known = namedPools.get(key) as { pool: BrowserPool; token: string | undefined } | undefined;
  if (known && known.token === token) return known.pool;
  const pool = new BrowserPool(idOrName);
  namedPools.set(key, { pool, token });
  return pool;
}

/** Returns the pool itself, or the pool with that id or name at the service of the environment. */
export function resolvePool<Session extends object>(
  pool: BrowserPool<Session> | string,
): BrowserPool<Session> {
  if (pool instanceof BrowserPool) return pool;
  // The caller names the type of the sessions of the environment's service.
  if (typeof pool === 'string') return namedPool(pool) as BrowserPool<object> as BrowserPool<Session>;
  throw new InvalidOptionError(
    'pool',
    'pool must be a BrowserPool, or the id or name of a pool, or a list of these.',
  );
}

/** One pool, or several in the order in which they are asked; each a `BrowserPool`, or the id or name of a pool. */
export type Pools<Session extends object = BrowserSession> =
  BrowserPool<Session> | string | readonly (BrowserPool<Session> | string)[];

/** The pools of a call. */
export type PoolList<Session extends object = object> = readonly [
  BrowserPool<Session>,
  ...BrowserPool<Session>[],
];

/** The elements of a list, or the only pool. */
export function listOf<Session extends object>(
  given: Pools<Session>,
): readonly (BrowserPool<Session> | string)[] {
  // What is no list is refused when it is resolved.
  return Array.isArray(given) ? (given as readonly (BrowserPool<Session> | string)[]) : [given as string];
}

/** Returns the pools of a call. A pool that is named twice is asked once. */
export function resolvePools<Session extends object>(given: Pools<Session>): PoolList<Session> {
  const [first, ...further] = new Set(listOf(given).map((pool) => resolvePool<Session>(pool)));
  if (!first) throw new InvalidOptionError('pool', 'The list of pools must not be empty.');
  return [first, ...further];
}
