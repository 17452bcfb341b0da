import { PoolConnectionError } from '../errors/index.js';
import { LinkedAbort } from '../internal/linked-abort.js';
import { raceAbort } from '../internal/race.js';
import type { Authorization } from './authorization.js';
import type { Dispatcher } from 'undici';

/** Largest response body that is read, in bytes. */
const LARGEST_BODY = 4 * 1024 * 1024;

/** Failures from before the request left this machine: the service can't have acted on it. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|\w*SELF_SIGNED\w*|UNABLE_TO_\w+|DEPTH_ZERO_\w+)$/;

export interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: object;
  /** Milliseconds until the whole response must be there. */
  timeout: number;
  signal?: AbortSignal | undefined;
  /** Gives up only as long as nothing was sent: after that the answer must be heard. */
  unsentSignal?: AbortSignal | undefined;
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
    const response = await sendOnce(dispatcher, authorization, request, limit.signal);
    if (response.status !== 401 || !authorization.canChange) return response;
    return await sendOnce(dispatcher, authorization, request, limit.signal);
  } finally {
    limit.dispose();
  }
}

async function sendOnce(
  dispatcher: Dispatcher,
  authorization: Authorization,
  request: HttpRequest,
  limit: AbortSignal,
): Promise<HttpResponse> {
  const { signal, unsentSignal } = request;
  try {
    const token = await raceAbort(raceAbort(authorization.current(), limit), unsentSignal);
    limit.throwIfAborted();
    unsentSignal?.throwIfAborted();
    return await send(dispatcher, token, request, limit);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error === limit.reason) {
      const message = `The token function gave no token within ${request.timeout} ms.`;
      throw new PoolConnectionError(message, 'ERR_POOL_UNREACHABLE', { cause: error });
    }
    throw error;
  }
}

/** Sends one request; redirects are not followed: the token must not leave the origin. */
async function send(
  dispatcher: Dispatcher,
  token: string,
  request: HttpRequest,
  limit: AbortSignal,
): Promise<HttpResponse> {
  const { method, path, body, signal } = request;
  try {
    const response = await dispatcher.request({
      method,
      path,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body ? JSON.stringify(body) : null,
      signal: limit,
    });
    const read = await readBody(response.body);
    signal?.throwIfAborted();
    return { status: response.statusCode, headers: response.headers, ...read };
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

/** Some failures have no message, only a code: several addresses were tried in vain. */
function explain({ message, code }: NodeJS.ErrnoException): string {
  return message || code || 'unknown failure';
}

function connectionError(why: string, cause: unknown, { method, path }: HttpRequest): PoolConnectionError {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === undefined || !NEVER_SENT.test(code)) {
    const message = `The service gave no whole response to ${method} ${path}: ${why}.`;
    return new PoolConnectionError(message, 'ERR_POOL_NO_RESPONSE', { cause });
  }
  const message = `The service could not be reached for ${method} ${path}: ${why}. Check baseUrl and the network.`;
  return new PoolConnectionError(message, 'ERR_POOL_UNREACHABLE', { cause });
}
