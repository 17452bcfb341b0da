import { PooledBrowserError, sentence, type ErrorFacts } from './errors.js';
import { redact } from './redact.js';
import { isError } from './globals.js';

/** A further error inside an error response. No field is required. */
export interface ErrorDetail {
  /** Machine-readable code. */
  code?: string;
  /** Text for people. */
  message?: string;
}

/** The body of an error response with its status. */
export interface ServiceFault {
  /** HTTP status. */
  status: number;
  /** The `code` of the body, or `http_<status>` if the body has none. */
  code: string;
  /** The `message` of the body. */
  message: string;
  /** Additional errors. */
  details?: ErrorDetail[] | undefined;
  /** A lower-level error. */
  inner_error?: ErrorDetail | undefined;
  /** Advice on what to check. */
  hint?: string | undefined;
  /** Milliseconds to wait before the next request. */
  retryAfter?: number | undefined;
}

/** The service answered with an error status. `code` is the service's own code, or `http_<status>`. */
export class PoolServiceError extends PooledBrowserError {
  override readonly name = 'PoolServiceError' as const;
  override readonly code: string;

  /** HTTP status of the response. */
  readonly status: number;
  /** Additional errors. */
  declare readonly details?: readonly ErrorDetail[];
  /** A lower-level error. */
  declare readonly inner_error?: ErrorDetail;
  /** Advice on what to check. */
  declare readonly hint?: string;
  /** Milliseconds to wait before the next request, from the `Retry-After` header. */
  declare readonly retryAfter?: number;

  constructor(fault: ServiceFault, facts?: ErrorFacts) {
    const { status, code, message, details, inner_error, hint, retryAfter } = fault;
    // A message that is made of the details does not repeat them.
    const further = details
      ?.filter((detail) => !message.includes(detail.message ?? '\n'))
      .map(({ code, message }) => [code, message].filter(Boolean).join(': '))
      .join('; ');
    const sentences = [`${status} ${code}: ${message}`, further && `Details: ${further}`, hint];
    super(sentences.flatMap((text) => (text ? sentence(text) : [])).join(' '), facts);
    this.code = redact(code);
    this.status = status;
    if (details) this.details = details.map(redactDetail);
    if (inner_error) this.inner_error = redactDetail(inner_error);
    if (hint) this.hint = redact(hint);
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

function redactDetail(detail: ErrorDetail): ErrorDetail {
  return Object.fromEntries(Object.entries(detail).map(([key, text]) => [key, redact(text)]));
}

/** Returns true for an error response of the service. */
export function isPoolServiceError(error: unknown): error is PoolServiceError {
  return isError(error) && error.name === 'PoolServiceError' && 'status' in error;
}

/** Codes of a 409 that mean "no browser is available" also for a lease with a name. */
const NONE_AVAILABLE = /available|capacity|exhaust|timeout|timed_out|empty|busy/i;

/** @internal Returns whether a service refused a lease with a name because the name is in use. Without a name, a 409 means that no browser is available. */
export function isNameConflict(error: unknown): boolean {
  if (!(error instanceof PoolServiceError)) return false;
  const { status, code, details, inner_error } = error;
  if (status === 422) return true;
  const codes = [code, inner_error?.code, ...(details ?? []).map((detail) => detail.code)];
  const isAboutOther = codes.some(
    (one) => one !== undefined && NONE_AVAILABLE.test(one) && !/name/i.test(one),
  );
  return status === 409 && !isAboutOther;
}

/**
 * The service sent no complete response.
 * - `ERR_POOL_UNREACHABLE`: the request was not sent (connection refused, unknown host, TLS);
 * - `ERR_POOL_NO_RESPONSE`: the request was sent, and its outcome is unknown (connection reset, timeout).
 */
export class PoolConnectionError extends PooledBrowserError {
  override readonly name = 'PoolConnectionError' as const;
  override readonly code: 'ERR_POOL_UNREACHABLE' | 'ERR_POOL_NO_RESPONSE';
  /**
   * True if retrying does not help: the service does not support TLS, its certificate is not trusted, or it was never
   * reached within `unreachableTimeout`.
   */
  readonly isPermanent: boolean;

  constructor(
    message: string,
    code: PoolConnectionError['code'],
    facts: ErrorFacts & { isPermanent?: boolean } = {},
  ) {
    const { isPermanent = false, ...rest } = facts;
    super(message, rest);
    this.code = code;
    this.isPermanent = isPermanent;
  }
}

/** The service sent a response that does not conform to its API. */
export class PoolResponseError extends PooledBrowserError {
  override readonly name = 'PoolResponseError' as const;
  override readonly code = 'ERR_POOL_RESPONSE' as const;

  /** HTTP status of the response. */
  readonly status: number;

  constructor(message: string, status: number, facts?: ErrorFacts) {
    super(message, facts);
    this.status = status;
  }
}

/** The `BrowserPool` was closed, before a call or during it. */
export class PoolClosedError extends PooledBrowserError {
  override readonly name = 'PoolClosedError' as const;
  override readonly code = 'ERR_POOL_CLOSED' as const;

  constructor(facts?: ErrorFacts) {
    super('The BrowserPool is closed, which ended its calls and leases. Create a new BrowserPool.', facts);
  }
}

/** A browser could not be released in time, or the outcome is unknown. */
export class ReleaseError extends PooledBrowserError {
  override readonly name = 'ReleaseError' as const;
  override readonly code = 'ERR_RELEASE' as const;
  declare readonly sessionId: string;
  /**
   * `'failed'`: the browser stays leased until its inactivity timeout; `'unknown'`: the service did not answer, or its answer
   * does not show what happened. `cause` is the error of the last request, with the service's own words.
   */
  readonly released: 'failed' | 'unknown';

  constructor(message: string, released: 'failed' | 'unknown', facts: ErrorFacts & { sessionId: string }) {
    super(message, facts);
    this.released = released;
  }
}

/** The video of a recording was not ready in time. It may become ready later. */
export class ReplayNotReadyError extends PooledBrowserError {
  override readonly name = 'ReplayNotReadyError' as const;
  override readonly code = 'ERR_REPLAY_NOT_READY' as const;
}
