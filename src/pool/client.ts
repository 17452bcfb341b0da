import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { asError, duration, InvalidOptionError, type ErrorFacts } from '../shared/errors.js';
import { nextMacrotask } from '../shared/clock.js';
import type { Trust } from '../shared/network.js';
import { hideOwnSecret } from '../shared/redact.js';
import { PoolClosedError, PoolConnectionError } from '../shared/service-errors.js';
import type { ServiceRequest } from '../services/browser-service.js';
import { Host } from './host.js';
import type { PoolSettings } from './pool-settings.js';
import { isToken, type Token } from './pool-options.js';
import { explain, unreachable } from '../net/reachability.js';
import type { HttpRequest } from '../net/http.js';
import {
  contentOf,
  LONGEST_PAUSE,
  readResponse,
  type HttpResponse,
  type OpenResponse,
} from '../net/response.js';
import { authorize, completeRequest, type CompleteRequest } from './tickets.js';

/** Timeout of a request that does not wait for a browser, in ms. */
const REQUEST_TIMEOUT = 30_000;

export interface SendOptions {
  /** Pool and session, for errors. */
  facts: ErrorFacts;
  /** Milliseconds until the whole response must have arrived; with `onContent`, until its content begins. Default: 30,000. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Aborts the request only before it is sent: afterwards the response must be read. */
  unsentSignal?: AbortSignal | undefined;
  /** Called when the request is about to be sent, as soon as there is a connection. */
  onSend?: (() => void) | undefined;
  /** Called when the request is written. */
  onWrite?: (() => void) | undefined;
  /** Receives the content of a 200 as a stream of any size. Without it, the body is read into memory. */
  onContent?: (content: AsyncIterable<Uint8Array>, headers: HttpResponse['headers']) => Promise<void>;
}

/** A client of one service at one address. It opens no connection before the first request. */
export class ServiceClient {
  readonly #settings: PoolSettings;
  readonly #token: Token | undefined;
  #host: Host | undefined;
  #leave: (() => Promise<void>) | undefined;
  #lastToken: string | undefined;
  /** Open requests, and what else the pool waits for before it closes. */
  readonly background = new BackgroundWork();
  /** Receives each token that the token function returns. */
  onToken: (token: string) => void = () => {};
  #closed: Promise<void> | undefined;

  constructor(settings: PoolSettings) {
    const { url, token } = settings;
    this.#settings = settings;
    this.#token =
      url.protocol === 'local:' ? () => this.host.open().then(({ local }) => local!.token) : token;
    if (typeof this.#token === 'string') this.#lastToken = this.#token;
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
    const { insecure, network, service } = this.#settings;
    const { headers, keepAlive } = service;
    return { baseUrl: this.host.url, insecure, network, headers, keepAlive };
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
    if (!this.refreshToken || this.#settings.service.auth === 'none') return;
    const abort = new LinkedAbort(options.signal, REQUEST_TIMEOUT);
    await this.#currentToken(options, abort).finally(() => abort.dispose());
  }

  /** Adds the address to a request, for another process. */
  complete(request: ServiceRequest): CompleteRequest {
    return completeRequest(request, this.host.url, this.#settings.service);
  }

  /** Sends a request. After a 401 a token function is called again, once. One timeout covers everything. */
  async send(request: ServiceRequest | CompleteRequest, options: SendOptions): Promise<HttpResponse> {
    const { facts, signal, timeout = REQUEST_TIMEOUT, unsentSignal, onSend, onWrite, onContent } = options;
    if (this.#closed) throw new PoolClosedError(facts);
    const end = this.background.begin();
    const abort = new LinkedAbort(signal, timeout);
    try {
      for (let isLast = !this.refreshToken; ; isLast = true) {
        const token = await this.#currentToken(options, abort);
        const { method, body } = request;
        const { url, headers } = authorize('url' in request ? request : this.complete(request), token);
        const { connections } = await raceAbort(raceAbort(this.host.open(), abort.signal), unsentSignal);
        unsentSignal?.throwIfAborted();
        onSend?.();
        const message = { url, method, headers: { ...headers, ...(onContent && { accept: '*/*' }) }, body };
        const pause = onContent && LONGEST_PAUSE;
        const sent = connections.send(message, { signal: abort.signal, unsentSignal, onWrite, pause });
        const response = await this.#read(sent, message, options, abort);
        if (response.status !== 401 || isLast) return response;
      }
    } finally {
      abort.dispose();
      end();
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#leave?.() ?? Promise.resolve();
    return this.#closed;
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
    if (this.#token === undefined) return undefined;
    const isFunction = typeof this.#token === 'function';
    const token: unknown = isFunction ? await callToken(this.#token) : this.#token;
    if (!isToken(token)) {
      const message = 'The token function must return a string of visible ASCII characters.';
      throw new InvalidOptionError('token', message);
    }
    hideOwnSecret(token, isFunction ? 'rotated' : 'user');
    this.#lastToken = token;
    if (isFunction) this.onToken(token);
    return token;
  }

  /** Reads the response to a request that was sent. */
  async #read(
    sent: Promise<OpenResponse>,
    { url, method }: HttpRequest,
    { signal, unsentSignal, onContent, facts, timeout = REQUEST_TIMEOUT }: SendOptions,
    abort: LinkedAbort,
  ): Promise<HttpResponse> {
    const fail = (why: string, cause: unknown) => {
      const message = `The service sent no complete response to ${method} ${url.pathname}: ${why}.`;
      return new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause });
    };
    const response = await sent.catch((error: unknown) => {
      if (signal?.aborted) throw signal.reason;
      if (unsentSignal?.aborted && error === unsentSignal.reason) throw error;
      if (this.host.reachability.isFailure(error)) throw unreachable(this.host.url, error, facts);
      if (abort.signal.aborted) throw fail(`no response arrived within ${duration(timeout)}`, error);
      const advice = this.host.route.proxy === undefined ? '' : IDLE_ADVICE;
      throw fail(`${explain(error)}${advice}`, error);
    });
    const { statusCode: status, headers } = response;
    if (onContent && status === 200) {
      abort.clearTimeout();
      const content = contentOf(response.body, (error) =>
        signal?.aborted ? signal.reason : fail(explain(error), error),
      );
      // Content that is not read to its end would keep its connection busy.
      await onContent(content, headers).finally(() => response.body.on('error', () => {}).destroy());
      return { status, headers, body: '' };
    }
    const read = await readResponse(response);
    // The connection is free in the next macrotask. A request before that would open another one.
    await nextMacrotask();
    signal?.throwIfAborted();
    const { name, usualToken } = this.#settings.service;
    const source = { service: name, request: `${method} ${url.pathname}` };
    return { ...read, source: { ...source, variables: usualToken?.variables ?? [] } };
  }
}

/** Calls a token function, which may throw any value: retries need an error. */
async function callToken(read: () => unknown): Promise<unknown> {
  try {
    return await read();
  } catch (error) {
    throw asError(error);
  }
}

/** Work that continues after an abort of its caller, such as the release of a browser that was leased too late. */
class BackgroundWork {
  #open = 0;
  readonly #waiting: (() => void)[] = [];

  /** Adds work for `settled` to wait for. The work handles its own errors. */
  track(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }

  /** Begins work for `settled` to wait for. The returned function ends it. */
  begin(): () => void {
    this.#open++;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#open--;
      if (this.#open === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    };
  }

  async settled(): Promise<void> {
    while (this.#open > 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      // Work that ends may begin other work, such as a release, in the same macrotask.
      await nextMacrotask();
    }
  }
}

/** An acquire request that waits sends nothing. */
const IDLE_ADVICE = '. If the proxy closes idle connections, decrease pollTimeout';
