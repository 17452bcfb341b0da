import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import { duration, InvalidOptionError, type ErrorFacts } from '../shared/errors.js';
import { hideSecret } from '../shared/redact.js';
import { PoolClosedError, PoolConnectionError } from '../shared/service-errors.js';
import { isToken, type Token } from './pool-options.js';
import { explain, unreachable } from './reachability.js';
import { Service } from './service.js';

/** Timeout of a request that does not wait for a browser, in ms. */
export const REQUEST_TIMEOUT = 30_000;
/** Largest response body that is read, in bytes. */
const LARGEST_BODY = 4 * 1024 * 1024;
/** Milliseconds without a byte after which streamed content counts as broken. */
const LONGEST_PAUSE = 30_000;

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: object | undefined;
  /** Pool and session, for errors. */
  facts: ErrorFacts;
  /** Milliseconds until the whole response must have arrived; with `onContent`, until its content begins. */
  timeout: number;
  signal?: AbortSignal | undefined;
  /** Aborts the request only before it is sent: afterwards the response must be read. */
  unsentSignal?: AbortSignal | undefined;
  /** Receives the content of a 200 as a stream of any size. Without it, the body is read into memory. */
  onContent?: (content: AsyncIterable<Uint8Array>, headers: HttpResponse['headers']) => Promise<void>;
}

export interface HttpResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body, or the part of it that arrived. */
  body: string;
  /** The error that cut the body off. */
  brokenBy?: Error;
}

/** Sends authorized requests to one service. It opens no connection before the first request. */
export class HttpClient {
  readonly service: Service;
  readonly #leave: () => Promise<void>;
  readonly #token: Token;
  /** Calls the token function; `undefined` for a token that never changes. */
  readonly refreshToken: (() => Promise<string>) | undefined;
  #lastToken: string | undefined;
  #isClosed: Promise<void> | undefined;

  constructor(url: URL, token: Token) {
    this.service = Service.at(url);
    this.#leave = this.service.join();
    this.#token = token;
    if (typeof token === 'string') this.#lastToken = token;
    else this.refreshToken = () => this.#readToken();
  }

  /** The token of the last request: when a process exits, it can't wait for a token function. */
  get lastToken(): string | undefined {
    return this.#lastToken;
  }

  /** The path of an endpoint. Each segment is encoded. */
  path(...segments: string[]): string {
    return [this.service.root, ...segments.map(encodeURIComponent)].join('/');
  }

  /** The absolute URL of an endpoint. */
  urlOf(...segments: string[]): string {
    return new URL(this.path(...segments), this.service.url).href;
  }

  /** Sends a request. After a 401 a token function is called again, once. One timeout covers everything. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    if (this.#isClosed) throw new PoolClosedError(request.facts);
    const dispatcher = await this.service.dispatcher();
    const abort = new LinkedAbort(request.signal, request.timeout);
    try {
      const token = await this.#currentToken(request, abort);
      const response = await this.#exchange(dispatcher, token, request, abort);
      if (response.status !== 401 || typeof this.#token === 'string') return response;
      return await this.#exchange(dispatcher, await this.#currentToken(request, abort), request, abort);
    } finally {
      abort.dispose();
    }
  }

  close(): Promise<void> {
    return (this.#isClosed ??= this.#leave());
  }

  async #currentToken({ facts, timeout, unsentSignal }: HttpRequest, abort: LinkedAbort): Promise<string> {
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

  async #readToken(): Promise<string> {
    const token = typeof this.#token === 'string' ? this.#token : await this.#token();
    if (typeof token !== 'string' || !isToken(token)) {
      throw new InvalidOptionError(
        'token',
        'The token function must return a string of visible ASCII characters.',
      );
    }
    hideSecret(token);
    this.#lastToken = token;
    return token;
  }

  /** Sends one request. It follows no redirect: the token must not leave the origin. */
  async #exchange(
    dispatcher: Dispatcher,
    token: string,
    request: HttpRequest,
    abort: LinkedAbort,
  ): Promise<HttpResponse> {
    const { signal, onContent } = request;
    const { statusCode: status, headers, body } = await this.#send(dispatcher, token, request, abort.signal);
    if (onContent && status === 200) {
      abort.clearTimeout();
      // Content that is not read to its end would keep its connection busy.
      await onContent(contentOf(body, request), headers).finally(() => body.on('error', () => {}).destroy());
      return { status, headers, body: '' };
    }
    const read = await readBody(body);
    // undici frees the connection in the next turn of the event loop. A request before that would open another one.
    await nextTurn();
    signal?.throwIfAborted();
    return { status, headers, ...read };
  }

  /** Resolves with the head of the response. */
  async #send(
    dispatcher: Dispatcher,
    token: string,
    request: HttpRequest,
    abortSignal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { method, path, body, signal, onContent, facts, timeout } = request;
    try {
      return await dispatcher.request({
        method,
        path,
        headers: {
          authorization: `Bearer ${token}`,
          accept: onContent ? '*/*' : 'application/json',
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body ? JSON.stringify(body) : null,
        signal: abortSignal,
        ...(onContent && { bodyTimeout: LONGEST_PAUSE }),
      });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (this.service.reachability.isFailure(error)) throw unreachable(this.service.url, error, facts);
      const why = abortSignal.aborted ? `no response arrived within ${duration(timeout)}` : explain(error);
      throw noResponse(why, error, request);
    }
  }
}

async function readBody(body: Dispatcher.ResponseData['body']): Promise<{ body: string; brokenBy?: Error }> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > LARGEST_BODY) throw new Error(`The response is larger than ${LARGEST_BODY / 1024 ** 2} MiB`);
      chunks.push(chunk);
    }
    return { body: Buffer.concat(chunks).toString() };
  } catch (error) {
    return { body: Buffer.concat(chunks).toString(), brokenBy: error as Error };
  }
}

/** Distinguishes a broken connection from errors of the code that reads the content. */
async function* contentOf(
  body: Dispatcher.ResponseData['body'],
  request: HttpRequest,
): AsyncGenerator<Buffer, void> {
  try {
    yield* body as AsyncIterable<Buffer>;
  } catch (error) {
    if (request.signal?.aborted) throw request.signal.reason;
    throw noResponse(explain(error), error, request);
  }
}

function noResponse(why: string, cause: unknown, { method, path, facts }: HttpRequest): PoolConnectionError {
  const message = `The service sent no complete response to ${method} ${path}: ${why}.`;
  return new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause });
}
