import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { PoolResponseError, PoolServiceError, type ErrorDetail } from '../shared/service-errors.js';
import type { ErrorFacts } from '../shared/errors.js';
import { isRecord, parseJson, recordOf } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import { isSuccess } from './status.js';

/** @internal A response whose body is not read yet. Not declared: its types are Node's. */
export interface OpenResponse {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

export interface HttpResponse {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body, or the part of it that arrived. */
  body: string;
  /** The error that cut the body off. */
  brokenBy?: Error;
  /** What was asked, for the advice of an error. */
  source?: ResponseSource;
}

interface ResponseSource {
  /** The name of the service. */
  readonly service: string;
  /** Method and path. */
  readonly request: string;
  /** Environment variables that have the key of the service. */
  readonly variables: readonly string[];
}

/** Largest body that is read, in bytes, unpacked. */
const LARGEST_BODY = 4 * 1024 * 1024;
const TOO_LARGE = `The response is larger than ${LARGEST_BODY / 1024 ** 2} MiB`;
/** Longest part of a body in a message, in characters. */
const EXCERPT = 200;
/** Maximum length of a text, in characters, and maximum number of details that an error takes from an error body. */
const LONGEST_TEXT = 1000;
const MOST_DETAILS = 10;

/** @internal Reads a response to its end, or as far as it arrives. */
export async function readResponse(response: OpenResponse): Promise<HttpResponse> {
  const { statusCode: status, headers } = response;
  const chunks: Uint8Array[] = [];
  let size = 0;
  let brokenBy: Error | undefined;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > LARGEST_BODY) throw new Error(TOO_LARGE);
      chunks.push(chunk);
    }
  } catch (error) {
    brokenBy = error as Error;
  }
  const packed = Buffer.concat(chunks);
  const { 'content-encoding': encoding = 'identity' } = headers;
  const { bytes, fault } = encoding === 'identity' ? { bytes: packed } : unpack(packed, encoding);
  brokenBy ??= fault;
  // Some gateways add a byte order mark.
  const body = String(bytes).replace(/^\uFEFF/, '');
  return { status, headers, body, ...(brokenBy && { brokenBy }) };
}

/** Milliseconds without a byte after which streamed content counts as broken. */
export const LONGEST_PAUSE = 30_000;

/** @internal Streams content. Distinguishes a broken connection from errors of the code that reads the content. */
export async function* contentOf(
  body: AsyncIterable<Buffer>,
  toError: (cause: unknown) => unknown,
): AsyncGenerator<Buffer, void> {
  try {
    yield* body;
  } catch (error) {
    throw toError(error);
  }
}

/** Unpacks a body that a gateway compressed, though the request accepts no encoding. Of a broken one, what is there. */
function unpack(packed: Buffer, encoding: string): { bytes: Buffer; fault?: Error } {
  const zlib = process.getBuiltinModule('node:zlib');
  const { Z_SYNC_FLUSH: finishFlush, BROTLI_OPERATION_FLUSH } = zlib.constants;
  const limit = { maxOutputLength: LARGEST_BODY };
  try {
    if (/^(x-)?gzip$/i.test(encoding)) return { bytes: zlib.gunzipSync(packed, { ...limit, finishFlush }) };
    if (/^deflate$/i.test(encoding)) return { bytes: zlib.inflateSync(packed, { ...limit, finishFlush }) };
    if (/^br$/i.test(encoding))
      return { bytes: zlib.brotliDecompressSync(packed, { ...limit, finishFlush: BROTLI_OPERATION_FLUSH }) };
    throw new Error(`the content encoding ${encoding} is not supported`);
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    return { bytes: Buffer.alloc(0), fault: isLarge ? new Error(TOO_LARGE) : (error as Error) };
  }
}

/** Returns the JSON of a successful response. */
export function readJson(response: HttpResponse, facts: ErrorFacts): unknown {
  expectSuccess(response, facts);
  const fault = bodyFault(response);
  if (fault) throw responseError(fault, response, facts, response.brokenBy);
  try {
    return parseJson(response.body);
  } catch {
    // The parser's message may quote a part of a secret, which `redact` can't find.
    throw responseError('is not valid JSON', response, facts);
  }
}

/** Reads an object of a service from a successful response. `read` throws the reason why the JSON is not one. */
export function readAs<T>(response: HttpResponse, facts: ErrorFacts, read: (json: unknown) => T): T {
  const json = readJson(response, facts);
  try {
    return read(json);
  } catch (error) {
    throw responseError((error as Error).message, response, facts);
  }
}

export function expectSuccess(response: HttpResponse, facts: ErrorFacts): HttpResponse {
  if (isSuccess(response.status)) return response;
  throw serviceError(response, facts);
}

export function serviceError(response: HttpResponse, facts: ErrorFacts): PoolServiceError {
  const { status } = response;
  const { code, message, details, inner_error } = readErrorBody(response.body, status);
  return new PoolServiceError(
    {
      status,
      code: code ?? `http_${status}`,
      message: message ?? excerptOf(response.body),
      details,
      inner_error,
      hint: hintFor(response, facts),
      retryAfter: retryAfter(response.headers),
    },
    { ...facts, requestId: requestId(response) },
  );
}

export function responseError(
  fault: string,
  response: HttpResponse,
  facts: ErrorFacts,
  cause?: unknown,
): PoolResponseError {
  const shown = response.body === '' ? '' : ` Its body begins: ${excerptOf(response.body)}`;
  const message = `The service's response (status ${response.status}) ${fault}.${shown}`;
  return new PoolResponseError(message, response.status, { ...facts, requestId: requestId(response), cause });
}

function bodyFault({ headers, body, brokenBy }: HttpResponse): string | undefined {
  const type = headers['content-type'];
  if (brokenBy) return `is incomplete: ${brokenBy.message}`;
  if (body === '') return 'is empty';
  // Some gateways call JSON plain text.
  if (type !== undefined && !/json|text\/plain/i.test(String(type)))
    return `has the content type ${excerpt(String(type), EXCERPT)} instead of JSON`;
  return undefined;
}

function excerptOf(body: string): string {
  return excerpt(body, EXCERPT) || 'no message';
}

/** The message of an error body, on one line, escaped and without secrets. */
export function messageOfBody(body: string): string {
  return readErrorBody(body).message ?? excerptOf(body);
}

interface ErrorBody {
  code?: string | undefined;
  message?: string | undefined;
  details?: ErrorDetail[] | undefined;
  inner_error?: ErrorDetail | undefined;
}

/**
 * Reads as much of an error body as the response has. Services name its parts differently: the error is the body itself or
 * one of its fields (`error`, `value`), its text is `message`, `detail` or `error`, and further errors are in `details`,
 * `errors` or `detail`.
 */
function readErrorBody(body: string, status?: number): ErrorBody {
  const whole = recordOf(body);
  const error = { ...whole, ...[whole['error'], whole['value'], whole['detail']].find(isRecord) };
  const lists = [error['details'], error['errors'], error['detail']];
  const given = lists.find((list) => Array.isArray(list));
  const details = given
    ?.slice(0, MOST_DETAILS)
    .map(readDetail)
    .filter(({ code, message }) => Boolean(code ?? message));
  const own = textOf(error['message']) ?? text(error['detail']);
  const all = details?.map((detail) => detail.message).join('; ');
  // Beside a text for people, `error` is a code.
  const code = codeOf(error['code'], status) ?? (own && codeOf(error['error'], status));
  const message = own ?? (text(error['error']) || all || undefined);
  const { inner_error } = error;
  return {
    code,
    message,
    details,
    inner_error: isRecord(inner_error) ? readDetail(inner_error) : undefined,
  };
}

/** The parts of an error in a list. A fault of a field names the field (`loc`, `path`). */
function readDetail(given: unknown): ErrorDetail {
  const { code, type, message, msg, loc, path } = isRecord(given) ? given : { message: given };
  const found = codeOf(code) ?? codeOf(type);
  const fault = text(message) ?? text(msg);
  const place = [loc, path]
    .find((one): one is unknown[] => Array.isArray(one))
    ?.filter((value) => typeof value === 'string' || typeof value === 'number')
    .join('.');
  const named = place && fault ? text(`${place}: ${fault}`) : fault;
  return { ...(found && { code: found }), ...(named && { message: named }) };
}

/** One word, or the lower-case words of WebDriver. */
const CODE = /^(\S+|[a-z][a-z -]*)$/;

/** A code for programs. The status, its usual words, and a text for people are none. */
function codeOf(value: unknown, status?: number): string | undefined {
  const code = typeof value === 'number' ? String(value) : text(value);
  const isUsual = code === String(status) || code === STATUS_CODES[status ?? 0];
  return code === undefined || isUsual || !CODE.test(code) ? undefined : code;
}

function textOf(value: unknown): string | undefined {
  return Array.isArray(value) ? text(value.map((one) => text(one)).join('; ')) : text(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? excerpt(value, LONGEST_TEXT) : undefined;
}

function hintFor(
  { status, headers, source }: HttpResponse,
  { pool, sessionId }: ErrorFacts,
): string | undefined {
  if (status >= 300 && status < 400) {
    const target = headers['location'];
    return `Redirects are not followed, because the token must stay with its service. Check baseUrl${target ? ` (the redirect leads to ${excerpt(String(target), EXCERPT)})` : ''}.`;
  }
  if (status === 400) return 'Check the fields in the details.';
  if (status === 401) {
    const places = ['option token', ...(source?.variables ?? [])].join(', ');
    return `Check the access token: ${places}, or BROWSER_POOL_ACCESS_TOKEN.`;
  }
  if (status === 403) return 'The token lacks a permission, or the plan does not allow this.';
  if (status >= 500 && source) {
    const where = pool === undefined ? '' : ` of pool ${pool}`;
    return `The service ${source.service} failed at ${source.request}${where}: try again later, or read its log.`;
  }
  if (status !== 404) return undefined;
  if (sessionId)
    return `Session ${sessionId} no longer exists: it was released or deleted, or its inactivity timeout elapsed.`;
  return pool
    ? `The service has no pool ${pool}. Check the id or name of the pool, and baseUrl.`
    : 'The service has no such path. Check baseUrl, and that it is the address of this service.';
}

function requestId({ headers }: HttpResponse): string | undefined {
  return text(headers['x-request-id']) ?? text(headers['request-id']);
}

/**
 * Reads the header `x-should-retry`, by which a service says whether the same request can succeed later, whatever its status
 * means elsewhere.
 */
export function shouldRetry(headers: HttpResponse['headers']): boolean | undefined {
  const value = headers['x-should-retry'];
  return value === 'true' || value === 'false' ? value === 'true' : undefined;
}

/** Reads the header `retry-after-ms`, or `Retry-After` in seconds or as a date, as milliseconds. */
export function retryAfter(headers: HttpResponse['headers']): number | undefined {
  const exact = headers['retry-after-ms'];
  if (typeof exact === 'string' && /^\d+(\.\d+)?$/.test(exact)) return Math.ceil(Number(exact));
  const value = headers['retry-after'];
  if (typeof value !== 'string') return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = Date.parse(value);
  // The clock of this machine may be wrong, so the date of the response takes precedence.
  const now = Date.parse(String(headers['date']));
  const wait = until - (Number.isNaN(now) ? Date.now() : now);
  return wait > 0 ? wait : undefined;
}
