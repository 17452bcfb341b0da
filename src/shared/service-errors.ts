import { PooledBrowserError, type ErrorFacts } from './errors.js';
import { redact } from './redact.js';

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

/**
 * No whole response came.
 * - `ERR_POOL_UNREACHABLE`: the request never left (refused, unknown host, TLS): nothing happened at the service.
 * - `ERR_POOL_NO_RESPONSE`: the request was sent and its outcome can't be known (reset, time-out).
 */
export class PoolConnectionError extends PooledBrowserError {
  override readonly name = 'PoolConnectionError' as const;
  declare readonly code: 'ERR_POOL_UNREACHABLE' | 'ERR_POOL_NO_RESPONSE';

  constructor(message: string, code: PoolConnectionError['code'], facts?: ErrorFacts) {
    super(message, code, facts);
  }
}

/** The service answered with something that the interface does not allow: never handed out as data. */
export class PoolResponseError extends PooledBrowserError {
  override readonly name = 'PoolResponseError' as const;
  declare readonly code: 'ERR_POOL_RESPONSE';

  /** HTTP status of the response. */
  readonly status: number;

  constructor(message: string, status: number, facts?: ErrorFacts) {
    super(message, 'ERR_POOL_RESPONSE', facts);
    this.status = status;
  }
}

/** A call on a `BrowserPool` after its `close()`. */
export class PoolClosedError extends PooledBrowserError {
  override readonly name = 'PoolClosedError' as const;
  declare readonly code: 'ERR_POOL_CLOSED';

  constructor(facts?: ErrorFacts) {
    super('This BrowserPool was closed. Make a new one.', 'ERR_POOL_CLOSED', facts);
  }
}

/** No browser became available in time. */
export class AcquireTimeoutError extends PooledBrowserError {
  override readonly name = 'AcquireTimeoutError' as const;
  declare readonly code: 'ERR_ACQUIRE_TIMEOUT';
  declare readonly attempts: number;

  /** Milliseconds waited in all. */
  readonly waited: number;

  constructor(message: string, facts: ErrorFacts & { attempts: number; elapsed: number }) {
    super(message, 'ERR_ACQUIRE_TIMEOUT', facts);
    this.waited = facts.elapsed;
  }
}

/** True when no browser became available in time. */
export function isAcquireTimeoutError(error: unknown): error is AcquireTimeoutError {
  return error instanceof Error && error.name === 'AcquireTimeoutError' && 'waited' in error;
}

/**
 * The lease's name is taken, and it may be this very call that took it: with a request before, whose outcome is not
 * known (event `outcome-unknown`). The service's refusal is the `cause`.
 */
export class LeaseNameTakenError extends PooledBrowserError {
  override readonly name = 'LeaseNameTakenError' as const;
  declare readonly code: 'ERR_LEASE_NAME_TAKEN';

  /** The name. */
  readonly leaseName: string;

  constructor(message: string, leaseName: string, facts?: ErrorFacts) {
    super(message, 'ERR_LEASE_NAME_TAKEN', facts);
    this.leaseName = leaseName;
  }
}

/**
 * A call waits for a browser inside the callback of a lease of the same pool, and every browser of that pool is held
 * by a lease that waits like this: none would ever end.
 */
export class NestedLeaseError extends PooledBrowserError {
  override readonly name = 'NestedLeaseError' as const;
  declare readonly code: 'ERR_NESTED_LEASE';

  /** `session_id` of the lease around this call. */
  readonly outerSessionId: string;

  constructor(message: string, outerSessionId: string, facts?: ErrorFacts) {
    super(message, 'ERR_NESTED_LEASE', facts);
    this.outerSessionId = outerSessionId;
  }
}

/** A browser could not be given back in time. It stays leased until its inactivity time-out ends it. */
export class ReleaseError extends PooledBrowserError {
  override readonly name = 'ReleaseError' as const;
  declare readonly code: 'ERR_RELEASE';
  declare readonly sessionId: string;

  constructor(message: string, facts: ErrorFacts & { sessionId: string }) {
    super(message, 'ERR_RELEASE', facts);
  }
}

/** The film of a recording was not written in time. It may be later. */
export class ReplayNotReadyError extends PooledBrowserError {
  override readonly name = 'ReplayNotReadyError' as const;
  declare readonly code: 'ERR_REPLAY_NOT_READY';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_REPLAY_NOT_READY', facts);
  }
}
