import { redact } from '../internal/redact.js';
import { PooledBrowserError, type ErrorFacts } from './pooled-browser-error.js';

/** A further error inside an error response. Neither field is required (interface: Error). */
export interface ErrorDetail {
  code?: string;
  message?: string;
}

/** What an error response says (interface: Error), with the status that carried it. */
export interface ServiceFault {
  /** HTTP status. */
  status: number;
  /** The body's `code`; `http_<status>` where the body had none. */
  code: string;
  message: string;
  details?: ErrorDetail[] | undefined;
  inner_error?: ErrorDetail | undefined;
  /** What to check next. */
  hint?: string | undefined;
  /** Milliseconds that the service asks to wait before the next try (`Retry-After`). */
  retryAfter?: number | undefined;
}

/**
 * The service refused. `code` is the service's own code, such as `bad_request`
 * (interface: Errors), or `http_<status>` where the response held none.
 */
export class PoolServiceError extends PooledBrowserError {
  override readonly name = 'PoolServiceError' as const;

  /** HTTP status of the response. */
  readonly status: number;
  /** Additional errors when there are several (interface: Error, not required). */
  declare readonly details?: readonly ErrorDetail[];
  /** Lower-level detail (interface: Error, not required). */
  declare readonly inner_error?: ErrorDetail;
  /** What to check next. */
  declare readonly hint?: string;
  /** Milliseconds that the service asks to wait before the next try (`Retry-After`). */
  declare readonly retryAfter?: number;

  constructor(fault: ServiceFault, facts?: ErrorFacts) {
    const { status, code, message, details, inner_error, hint, retryAfter } = fault;
    const further = details
      ?.map(({ code, message }) => [code, message].filter(Boolean).join(': '))
      .join('; ');
    const sentences = [`${status} ${code}: ${message}`, further && `Details: ${further}`, hint];
    super(sentences.filter(Boolean).join('\n'), redact(code), facts);
    this.status = status;
    if (details) this.details = details.map(clean);
    if (inner_error) this.inner_error = clean(inner_error);
    if (hint) this.hint = redact(hint);
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
  }
}

function clean(detail: ErrorDetail): ErrorDetail {
  return Object.fromEntries(Object.entries(detail).map(([key, text]) => [key, redact(text)]));
}

/** True for a response of the service that is an error, whatever its status. */
export function isPoolServiceError(error: unknown): error is PoolServiceError {
  return error instanceof Error && error.name === 'PoolServiceError' && 'status' in error;
}
