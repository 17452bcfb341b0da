import type { Dispatcher } from 'undici';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { nextTurn } from '../shared/clock.js';
import { duration, InvalidOptionError, type ErrorFacts } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import { readOption, readOptions } from '../shared/options.js';
import type { NetworkSettings } from '../shared/network.js';
import { hideParameters, hideSecret } from '../shared/redact.js';
import { PoolClosedError, PoolConnectionError } from '../shared/service-errors.js';
import type { BrowserService, Replay, ReplayRequest, ServiceRequest } from './browser-service.js';
import { authorize, completeRequest, type CompleteRequest } from './complete-request.js';
import type { DownloadedReplay } from './download-replay.js';
import type { FairQueue } from './fair-queue.js';
import { Host } from './host.js';
import {
  downloadChecks,
  isToken,
  pathSegment,
  replayRequestChecks,
  requestChecks,
  type DownloadOptions,
  type LocalOptions,
  type RequestOptions,
  type Token,
} from './pool-options.js';
import type { Trust } from '../shared/urls.js';
import { explain, unreachable } from './reachability.js';
import { readBody } from './response-body.js';
import { expectSuccess, readAs, type HttpResponse } from './response.js';

/** Timeout of a request that does not wait for a browser, in ms. */
export const REQUEST_TIMEOUT = 30_000;
/** Milliseconds without a byte after which streamed content counts as broken. */
const LONGEST_PAUSE = 30_000;

/** How to send a request. */
export interface SendOptions {
  /** Pool and session, for errors. */
  facts: ErrorFacts;
  /** Milliseconds until the whole response must have arrived; with `onContent`, until its content begins. Default: 30,000. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Aborts the request only before it is sent: afterwards the response must be read. */
  unsentSignal?: AbortSignal | undefined;
  /** Called when the request is about to be sent. */
  onSend?: (() => void) | undefined;
  /** Receives the content of a 200 as a stream of any size. Without it, the body is read into memory. */
  onContent?: (content: AsyncIterable<Uint8Array>, headers: HttpResponse['headers']) => Promise<void>;
}

/** Where a client sends its requests. */
export interface ClientSettings {
  readonly service: BrowserService;
  /** Address of the service; `local:<pool>` for browsers of this machine. */
  readonly url: URL;
  readonly token: Token | undefined;
  readonly insecure: boolean;
  readonly local: LocalOptions | undefined;
  readonly network: NetworkSettings;
}

/** A client of one service at one address. It opens no connection before the first request. */
export class ServiceClient {
  readonly service: BrowserService;
  readonly insecure: boolean;
  readonly #settings: ClientSettings;
  readonly #token: Token | undefined;
  #host: Host | undefined;
  #leave: (() => Promise<void>) | undefined;
  #lastToken: string | undefined;
  /** Receives each token that the token function returns. */
  onToken: (token: string) => void = () => {};
  #isClosed: Promise<void> | undefined;

  constructor(settings: ClientSettings) {
    const { service, url, token, insecure } = settings;
    this.service = service;
    this.insecure = insecure;
    this.#settings = settings;
    this.#token = url.protocol === 'local:' ? () => this.host.localToken() : token;
    if (typeof this.#token === 'string') this.#lastToken = this.#token;
    hideParameters(service.secretParameters ?? []);
  }

  /** What all clients at this address share. */
  get host(): Host {
    if (this.#host) return this.#host;
    const { url, local, network } = this.#settings;
    this.#host = Host.at(url, local, network);
    this.#leave = this.#host.join();
    return this.#host;
  }

  /** Which WebSocket URLs are used, and how. The address of local browsers is known after the first request. */
  get trust(): Trust {
    const { insecure, network } = this.#settings;
    return { baseUrl: this.host.url, insecure, network };
  }

  /** The queue of the callers of one pool. The own limit of a service counts for all pools at its address. */
  queueOf(idOrName: string): FairQueue {
    return this.host.queueOf(this.service.limit === undefined ? idOrName : '');
  }

  /** The token of the last request: when a process exits, it can't wait for a token function. */
  get lastToken(): string | undefined {
    return this.#lastToken;
  }

  /** Calls the token function; `undefined` for a token that never changes. */
  get refreshToken(): (() => Promise<string | undefined>) | undefined {
    return typeof this.#token === 'function' ? () => this.#readToken() : undefined;
  }

  /** Calls the token function before a URL that contains the token is built. A static token needs no call. */
  async prepareToken(options: SendOptions): Promise<void> {
    if (!this.refreshToken || this.service.auth === 'none') return;
    const abort = new LinkedAbort(options.signal, options.timeout ?? REQUEST_TIMEOUT);
    try {
      await this.#currentToken(options, abort);
    } finally {
      abort.dispose();
    }
  }

  /** Adds the address to a request, for another process. */
  complete(request: ServiceRequest): CompleteRequest {
    return completeRequest(request, this.host.url, this.service.auth);
  }

  /** Sends a request. After a 401 a token function is called again, once. One timeout covers everything. */
  async send(request: ServiceRequest | CompleteRequest, options: SendOptions): Promise<HttpResponse> {
    if (this.#isClosed) throw new PoolClosedError(options.facts);
    const abort = new LinkedAbort(options.signal, options.timeout ?? REQUEST_TIMEOUT);
    const exchange = async () => {
      const token = await this.#currentToken(options, abort);
      return this.#exchange(token, request, options, abort);
    };
    try {
      const response = await exchange();
      return response.status === 401 && this.refreshToken ? await exchange() : response;
    } finally {
      abort.dispose();
    }
  }

  /** Lists all replays of a session. */
  async replays(sessionId: string, options: RequestOptions & { pool?: string } = {}): Promise<Replay[]> {
    const { pool, ...given } = options;
    const { signal } = readOptions(requestChecks, given, 'replays');
    const facts = { pool, sessionId: readOption(pathSegment(), 'sessionId', sessionId) };
    const { list, read } = this.#supported(this.service.replays, 'no recordings');
    const response = await this.send(list(sessionId), { facts, signal });
    return [...readAs(response, facts, (json) => read(json, sessionId))];
  }

  /** Starts a recording of a leased browser. */
  async startReplay(
    sessionId: string,
    request: ReplayRequest = {},
    options: RequestOptions & { pool?: string } = {},
  ): Promise<Replay> {
    const { pool, ...given } = options;
    const { signal } = readOptions(requestChecks, given, 'startReplay');
    const checked = readOptions(replayRequestChecks, request, 'startReplay');
    const facts = { pool, sessionId: readOption(pathSegment(), 'sessionId', sessionId) };
    const start = this.#supported(this.service.replays?.start, 'no request that starts a recording');
    const response = await this.send(start(sessionId, checked), { facts, signal });
    return readAs(response, facts, startedReplay);
  }

  /** Stops a recording. */
  async stopReplay(
    sessionId: string,
    replayId: string,
    options: RequestOptions & { pool?: string } = {},
  ): Promise<void> {
    const { pool, ...given } = options;
    const { signal } = readOptions(requestChecks, given, 'stopReplay');
    const facts = { pool, sessionId: readOption(pathSegment(), 'sessionId', sessionId) };
    const replay = readOption(pathSegment(), 'replayId', replayId);
    const stop = this.#supported(this.service.replays?.stop, 'no request that stops a recording');
    expectSuccess(await this.send(stop(sessionId, replay), { facts, signal }), facts);
  }

  /** Downloads the video of a recording. */
  async downloadReplay(
    sessionId: string,
    replayId: string,
    file: string,
    options: DownloadOptions & { pool?: string } = {},
  ): Promise<DownloadedReplay> {
    const { pool, ...given } = options;
    const settings = readOptions(downloadChecks, given, 'downloadReplay');
    if (typeof file !== 'string' || file === '')
      throw new InvalidOptionError('path', 'path must be the path of the file to write.');
    const facts = { pool, sessionId: readOption(pathSegment(), 'sessionId', sessionId) };
    const replay = readOption(pathSegment(), 'replayId', replayId);
    const video = this.#supported(this.service.replays?.video, 'no request that downloads a video');
    // Loaded on demand, because few processes download a video.
    const { downloadReplay } = await import('./download-replay.js');
    return downloadReplay(this, video(sessionId, replay), { replayId, file, facts, ...settings });
  }

  close(): Promise<void> {
    this.#isClosed ??= this.#leave?.() ?? Promise.resolve();
    return this.#isClosed;
  }

  /** Throws if the service lacks what a method needs. */
  #supported<T>(part: T | undefined, lack: string): T {
    if (part !== undefined) return part;
    throw new InvalidOptionError('service', `The service ${this.service.name} has ${lack}.`);
  }

  async #currentToken(
    { facts, timeout = REQUEST_TIMEOUT, unsentSignal }: SendOptions,
    abort: LinkedAbort,
  ): Promise<string | undefined> {
    const { signal } = abort;
    try {
      const token = await raceAbort(raceAbort(this.#readToken(), signal), unsentSignal);
      signal.throwIfAborted();
      unsentSignal?.throwIfAborted();
      return token;
    } catch (error) {
      if (!abort.timedOut || error !== signal.reason) throw error;
      const message = `The token function returned no token within ${duration(timeout)}.`;
      throw new PoolConnectionError(message, 'ERR_POOL_UNREACHABLE', { ...facts, cause: error });
    }
  }

  async #readToken(): Promise<string | undefined> {
    const token = typeof this.#token === 'function' ? await this.#token() : this.#token;
    if (token === undefined && this.#token === undefined) return undefined;
    if (typeof token !== 'string' || !isToken(token)) {
      throw new InvalidOptionError(
        'token',
        'The token function must return a string of visible ASCII characters.',
      );
    }
    hideSecret(token);
    this.#lastToken = token;
    if (typeof this.#token === 'function') this.onToken(token);
    return token;
  }

  /** Sends one request. It follows no redirect: the token must not leave the origin. */
  async #exchange(
    token: string | undefined,
    request: ServiceRequest | CompleteRequest,
    options: SendOptions,
    abort: LinkedAbort,
  ): Promise<HttpResponse> {
    const { signal, onContent, facts, timeout = REQUEST_TIMEOUT } = options;
    const { method, body } = request;
    const { url, headers } = authorize('url' in request ? request : this.complete(request), token);
    const fail = (why: string, cause: unknown) => {
      const message = `The service sent no complete response to ${method} ${url.pathname}: ${why}.`;
      return new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause });
    };
    const dispatcher = await raceAbort(this.host.dispatcher(), abort.signal);
    options.onSend?.();
    const response = await dispatcher
      .request({
        method,
        path: url.pathname + url.search,
        headers: {
          ...headers,
          accept: onContent ? '*/*' : 'application/json',
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body ? JSON.stringify(body) : null,
        signal: abort.signal,
        ...(onContent && { bodyTimeout: LONGEST_PAUSE }),
      })
      .catch((error: unknown) => {
        if (signal?.aborted) throw signal.reason;
        if (this.host.reachability.isFailure(error)) throw unreachable(this.host.url, error, facts);
        if (abort.signal.aborted) throw fail(`no response arrived within ${duration(timeout)}`, error);
        const advice = this.host.route.proxy === undefined ? '' : IDLE_ADVICE;
        throw fail(`${explain(error)}${advice}`, error);
      });
    const { statusCode: status } = response;
    if (onContent && status === 200) {
      abort.clearTimeout();
      const content = contentOf(response.body, (error) =>
        signal?.aborted ? signal.reason : fail(explain(error), error),
      );
      // Content that is not read to its end would keep its connection busy.
      await onContent(content, response.headers).finally(() => response.body.on('error', () => {}).destroy());
      return { status, headers: response.headers, body: '' };
    }
    const read = await readBody(response.body, response.headers);
    // undici frees the connection in the next turn of the event loop. A request before that would open another one.
    await nextTurn();
    signal?.throwIfAborted();
    return { status, headers: response.headers, ...read };
  }
}

/** An acquire request that waits sends nothing. */
const IDLE_ADVICE = '. If the proxy closes idle connections, decrease pollTimeout';

/** The fields of a recording that this library reads. */
const REPLAY_TEXTS = ['replay_id', 'started_at', 'finished_at', 'replay_view_url'];

/** The recording of the response to a request that starts one. A field without a value, or of a wrong type, counts as missing. */
function startedReplay(json: unknown): Replay {
  if (!isRecord(json)) throw new Error('is not a JSON object');
  const isGiven = ([name, value]: [string, unknown]) =>
    REPLAY_TEXTS.includes(name) ? typeof value === 'string' : value !== null;
  return Object.fromEntries(Object.entries(json).filter(isGiven));
}

/** Distinguishes a broken connection from errors of the code that reads the content. */
async function* contentOf(
  body: Dispatcher.ResponseData['body'],
  toError: (error: unknown) => unknown,
): AsyncGenerator<Buffer, void> {
  try {
    yield* body as AsyncIterable<Buffer>;
  } catch (error) {
    throw toError(error);
  }
}
