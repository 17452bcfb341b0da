import { PoolResponseError, PoolServiceError, type ErrorDetail } from '../shared/service-errors.js';
import type { ErrorFacts } from '../shared/errors.js';
import { isRecord, parseJson } from '../shared/json.js';
import { excerpt } from '../shared/redact.js';
import type { HttpResponse } from './http.js';
import { retryAfter } from './retry-after.js';

const EXCERPT = 200;
/** Longest text of an Error body that is kept, in characters, and most of its details. */
const LONGEST_TEXT = 1000;
const MOST_DETAILS = 10;

/** The JSON of a successful response. */
export function readJson(response: HttpResponse, facts: ErrorFacts): unknown {
  if (!isSuccess(response)) throw serviceError(response, facts);
  const fault = bodyFault(response);
  if (fault) throw responseError(fault, response, facts, response.brokenBy);
  try {
    return parseJson(response.body);
  } catch {
    // The parser's own message quotes the body, secrets in it cut in two.
    throw responseError('is not valid JSON', response, facts);
  }
}

/** Throws unless the response is a success; its body does not matter. */
export function expectSuccess(response: HttpResponse, facts: ErrorFacts): void {
  if (!isSuccess(response)) throw serviceError(response, facts);
}

export function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

/** The error for a response that is none of the interface's. */
export function responseError(
  fault: string,
  response: HttpResponse,
  facts: ErrorFacts,
  cause?: unknown,
): PoolResponseError {
  const shown = response.body === '' ? '' : ` It begins: ${excerptOf(response)}`;
  const message = `The service's response (status ${response.status}) ${fault}.${shown}`;
  return new PoolResponseError(message, response.status, { ...facts, requestId: requestId(response), cause });
}

function bodyFault({ headers, body, brokenBy }: HttpResponse): string | undefined {
  const encoding = headers['content-encoding'];
  const type = headers['content-type'];
  if (brokenBy) return `broke off: ${brokenBy.message}`;
  // None was asked for, and a small compressed body can unpack to one without end.
  if (encoding !== undefined && encoding !== 'identity')
    return `has the content encoding ${String(encoding)}`;
  if (body === '') return 'is empty';
  if (type !== undefined && !/json/i.test(String(type))) return `is ${String(type)}, not JSON`;
  return undefined;
}

function serviceError(response: HttpResponse, facts: ErrorFacts): PoolServiceError {
  const { status } = response;
  const { code, message, details, inner_error } = readErrorBody(response);
  return new PoolServiceError(
    {
      status,
      code: code ?? `http_${status}`,
      message: message ?? excerptOf(response),
      details,
      inner_error,
      hint: hintFor(response, facts),
      retryAfter: retryAfter(response.headers),
    },
    { ...facts, requestId: requestId(response) },
  );
}

function excerptOf({ body }: HttpResponse): string {
  return excerpt(body, EXCERPT).replaceAll(/\s+/g, ' ').trim() || 'no message';
}

interface ErrorBody {
  code?: string | undefined;
  message?: string | undefined;
  details?: ErrorDetail[] | undefined;
  inner_error?: ErrorDetail | undefined;
}

/** An Error body (interface: Error), as far as the response holds one. */
function readErrorBody({ body }: HttpResponse): ErrorBody {
  let json: unknown;
  try {
    json = parseJson(body);
  } catch {
    return {};
  }
  if (!isRecord(json)) return {};
  const { code, message, details, inner_error } = json;
  return {
    code: text(code),
    message: text(message),
    details: Array.isArray(details)
      ? details.filter(isRecord).slice(0, MOST_DETAILS).map(readDetail)
      : undefined,
    inner_error: isRecord(inner_error) ? readDetail(inner_error) : undefined,
  };
}

function readDetail({ code, message }: Record<string, unknown>): ErrorDetail {
  return { ...(text(code) && { code: text(code)! }), ...(text(message) && { message: text(message)! }) };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? excerpt(value, LONGEST_TEXT) : undefined;
}

function hintFor({ status, headers }: HttpResponse, { pool, sessionId }: ErrorFacts): string | undefined {
  if (status >= 300 && status < 400) {
    const target = headers['location'];
    return `Redirects are not followed, so that the token stays with its service. Check baseUrl${target ? ` (it points to ${String(target)})` : ''}.`;
  }
  if (status === 400) return 'Check the fields that the details name.';
  if (status === 401) return 'Check the access token: option token, or BROWSER_POOL_ACCESS_TOKEN.';
  if (status === 403) return 'The token lacks a permission, or the plan does not allow this.';
  if (status !== 404) return undefined;
  if (sessionId)
    return `Session ${sessionId} is gone: released, deleted, or ended by its inactivity time-out.`;
  return `There is no pool ${pool ?? ''} at this service: check its id or name, and baseUrl.`;
}

function requestId({ headers }: HttpResponse): string | undefined {
  return text(headers['x-request-id']) ?? text(headers['request-id']);
}
