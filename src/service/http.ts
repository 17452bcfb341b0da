import { PoolConnectionError } from '../shared/service-errors.js';
import type { ErrorFacts } from '../shared/errors.js';
import { LinkedAbort, raceAbort } from '../shared/abort.js';
import type { Authorization } from './authorization.js';
import type { Dispatcher } from 'undici';

/** How long a plain request may take, in milliseconds. */
export const REQUEST_TIMEOUT = 30_000;
/** Largest response body that is read, in bytes. */
const LARGEST_BODY = 4 * 1024 * 1024;
/** Milliseconds without a byte after which content that is taken as it comes counts as broken off. */
const LONGEST_PAUSE = 30_000;

/** Failures from before the request left this machine: the service can't have acted on it. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+|DEPTH_ZERO_\w+)$/;

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: object;
  /** What its errors tell: pool and session. */
  facts: ErrorFacts;
  /** Milliseconds until the whole response must be there; with `onContent`, until its content begins to come. */
  timeout: number;
  signal?: AbortSignal | undefined;
  /** Gives up only as long as nothing was sent: after that the answer must be heard. */
  unsentSignal?: AbortSignal | undefined;
  /** Takes the content of a 200 as it comes, of whatever size. Without it, the body is read into memory. */
  onContent?: (content: AsyncIterable<Buffer>, headers: HttpResponse['headers']) => Promise<void>;
}

export interface HttpResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body as far as it came. */
  body: string;
  /** Set when the body broke off. */
  brokenBy?: Error;
}

/** One request with the token, after a 401 the token function is asked again, once: all under one deadline. */
export async function sendAuthorized(
  dispatcher: Dispatcher,
  authorization: Authorization,
  request: HttpRequest,
): Promise<HttpResponse> {
  const { signal, timeout } = request;
  const limit = new LinkedAbort(signal, timeout);
  try {
    const response = await sendOnce(dispatcher, authorization, request, limit);
    if (response.status !== 401 || !authorization.canChange) return response;
    return await sendOnce(dispatcher, authorization, request, limit);
  } finally {
    limit.dispose();
  }
}

async function sendOnce(
  dispatcher: Dispatcher,
  authorization: Authorization,
  request: HttpRequest,
  limit: LinkedAbort,
): Promise<HttpResponse> {
  const { signal, unsentSignal } = request;
  try {
    const token = await raceAbort(raceAbort(authorization.current(), limit.signal), unsentSignal);
    limit.signal.throwIfAborted();
    unsentSignal?.throwIfAborted();
    return await send(dispatcher, token, request, limit);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error === limit.signal.reason) {
      const message = `The token function gave no token within ${request.timeout} ms.`;
      throw new PoolConnectionError(message, 'ERR_POOL_UNREACHABLE', { ...request.facts, cause: error });
    }
    throw error;
  }
}

/** Sends one request; redirects are not followed: the token must not leave the origin. */
async function send(
  dispatcher: Dispatcher,
  token: string,
  request: HttpRequest,
  limit: LinkedAbort,
): Promise<HttpResponse> {
  const { signal, onContent } = request;
  const { statusCode: status, headers, body } = await requestHead(dispatcher, token, request, limit.signal);
  if (onContent && status === 200) {
    limit.liftTimeout();
    // Content that nobody takes to its end would hold its socket. That it was cut off is no news to anybody.
    await onContent(contentOf(body, request), headers).finally(() => body.on('error', () => {}).destroy());
    return { status, headers, body: '' };
  }
  const read = await readBody(body);
  signal?.throwIfAborted();
  return { status, headers, ...read };
}

async function requestHead(
  dispatcher: Dispatcher,
  token: string,
  request: HttpRequest,
  limit: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const { method, path, body, signal, onContent } = request;
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
      signal: limit,
      ...(onContent && { bodyTimeout: LONGEST_PAUSE }),
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const why = limit.aborted
      ? `none came within ${request.timeout} ms`
      : explain(error as NodeJS.ErrnoException);
    throw connectionError(why, error, request);
  }
}

async function readBody(body: Dispatcher.ResponseData['body']): Promise<{ body: string; brokenBy?: Error }> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > LARGEST_BODY) throw new Error(`The response is larger than ${LARGEST_BODY} bytes`);
      chunks.push(chunk);
    }
    return { body: Buffer.concat(chunks).toString() };
  } catch (error) {
    return { body: Buffer.concat(chunks).toString(), brokenBy: error as Error };
  }
}

/** The content, chunk by chunk. That it broke off is told apart from failures of whoever takes it. */
async function* contentOf(
  body: Dispatcher.ResponseData['body'],
  request: HttpRequest,
): AsyncGenerator<Buffer, void> {
  try {
    yield* body as AsyncIterable<Buffer>;
  } catch (error) {
    if (request.signal?.aborted) throw request.signal.reason;
    throw connectionError(explain(error as NodeJS.ErrnoException), error, request);
  }
}

/** Some failures have no message, only a code: several addresses were tried in vain. */
function explain({ message, code }: NodeJS.ErrnoException): string {
  return message || code || 'unknown failure';
}

function connectionError(
  why: string,
  cause: unknown,
  { method, path, facts }: HttpRequest,
): PoolConnectionError {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === undefined || !NEVER_SENT.test(code)) {
    const message = `The service gave no whole response to ${method} ${path}: ${why}.`;
    return new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { ...facts, cause });
  }
  const message = `The service could not be reached for ${method} ${path}: ${why}. Check baseUrl and the network.`;
  return new PoolConnectionError(message, 'ERR_POOL_UNREACHABLE', { ...facts, cause });
}
