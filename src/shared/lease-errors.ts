import { duration, PooledBrowserError, type ErrorFacts } from './errors.js';
import { isError } from './globals.js';

/** No browser became available within `acquireTimeout` or `retry.retries`. */
export class AcquireTimeoutError extends PooledBrowserError {
  override readonly name = 'AcquireTimeoutError' as const;
  override readonly code = 'ERR_ACQUIRE_TIMEOUT' as const;
  declare readonly attempts: number;

  /** Milliseconds that the call waited. */
  readonly waited: number;

  constructor(message: string, facts: ErrorFacts & { attempts: number; elapsed: number }) {
    super(message, facts);
    this.waited = facts.elapsed;
  }
}

/** Returns true if no browser became available within `acquireTimeout`. */
export function isAcquireTimeoutError(error: unknown): error is AcquireTimeoutError {
  return isError(error) && error.name === 'AcquireTimeoutError' && 'waited' in error;
}

/**
 * The name of the lease is in use. The user may be an earlier acquire request of the same call, whose outcome is unknown
 * (event `outcome-unknown`). The service's error is the `cause`.
 */
export class LeaseNameTakenError extends PooledBrowserError {
  override readonly name = 'LeaseNameTakenError' as const;
  override readonly code = 'ERR_LEASE_NAME_TAKEN' as const;

  /** The requested name. */
  readonly leaseName: string;

  constructor(message: string, leaseName: string, facts?: ErrorFacts) {
    super(message, facts);
    this.leaseName = leaseName;
  }
}

/** The library could not connect to the leased browser. The browser is released for destruction. */
export class ConnectError extends PooledBrowserError {
  override readonly name = 'ConnectError' as const;
  override readonly code = 'ERR_CONNECT' as const;

  /** HTTP status of the response that refused the WebSocket upgrade. */
  declare readonly status?: number;
  /** @internal Why no connection to the host of the WebSocket could be opened. Undefined if one was opened. */
  declare readonly unreachedBy?: Error;

  constructor(
    message: string,
    facts: ErrorFacts & { status?: number | undefined; unreachedBy?: Error | undefined } = {},
  ) {
    const { status, unreachedBy, ...rest } = facts;
    super(message, rest);
    if (status !== undefined) this.status = status;
    if (unreachedBy) Object.defineProperty(this, 'unreachedBy', { value: unreachedBy });
  }
}

/**
 * Why a connection ended:
 * - `dropped`: the WebSocket broke, or the other side stopped answering;
 * - `closed-by-service`: the other side closed the WebSocket, for example because the browser ended;
 * - `expired`: the session expired;
 * - `closed-by-callback`: the callback closed the browser or its connection.
 */
export type LossReason = 'dropped' | 'closed-by-service' | 'expired' | 'closed-by-callback';

/** The connection to the browser was lost during the callback. The run fails, whatever the callback returned. */
export class BrowserLostError extends PooledBrowserError {
  override readonly name = 'BrowserLostError' as const;
  override readonly code = 'ERR_BROWSER_LOST' as const;

  /** How the connection was lost. */
  readonly reason: LossReason;

  constructor(message: string, reason: LossReason, facts?: ErrorFacts) {
    super(message, facts);
    this.reason = reason;
  }
}

/** Returns true if the connection to the browser was lost during the callback. */
export function isBrowserLostError(error: unknown): error is BrowserLostError {
  return isError(error) && error.name === 'BrowserLostError' && 'reason' in error;
}

/** The connection was lost during `use`, and the lease continues. The call is not repeated. */
export class ConnectionDroppedError extends PooledBrowserError {
  override readonly name = 'ConnectionDroppedError' as const;
  override readonly code = 'ERR_CONNECTION_DROPPED' as const;

  constructor(facts?: ErrorFacts) {
    super(
      'The connection to the browser was lost during this call. The browser may have executed the last commands, ' +
        'and none was repeated. Check the state of the page before you continue.',
      facts,
    );
  }
}

/** Returns true if the connection was lost during the call and the lease continues. */
export function isConnectionDroppedError(error: unknown): error is ConnectionDroppedError {
  return isError(error) && error.name === 'ConnectionDroppedError';
}

/** Nobody answered a hand-off within its `timeout`. The lease goes on. */
export class HandoffTimeoutError extends PooledBrowserError {
  override readonly name = 'HandoffTimeoutError' as const;
  override readonly code = 'ERR_HANDOFF_TIMEOUT' as const;

  /** The timeout in ms. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(`Nobody answered the hand-off within ${duration(timeout)} (option timeout of handoff).`, facts);
    this.timeout = timeout;
  }
}

/** Returns true if nobody answered a hand-off within its `timeout`. */
export function isHandoffTimeoutError(error: unknown): error is HandoffTimeoutError {
  return isError(error) && error.name === 'HandoffTimeoutError' && 'timeout' in error;
}

/**
 * A method of the lease or of its pages was called after its end. The same holds for its browser, contexts and frames. The
 * library's error is the `cause`.
 */
export class LeaseOverError extends PooledBrowserError {
  override readonly name = 'LeaseOverError' as const;
  override readonly code = 'ERR_LEASE_OVER' as const;
}

/** The callback did not finish within the option `timeout`. */
export class CallbackTimeoutError extends PooledBrowserError {
  override readonly name = 'CallbackTimeoutError' as const;
  override readonly code = 'ERR_CALLBACK_TIMEOUT' as const;

  /** The timeout in ms. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(
      `The callback did not finish within ${duration(timeout)} (option timeout). Its connection to the browser was closed.`,
      facts,
    );
    this.timeout = timeout;
  }
}

/** The lease lasted as long as the option `lifetime` allows. Its browser is released. */
export class LeaseExpiredError extends PooledBrowserError {
  override readonly name = 'LeaseExpiredError' as const;
  override readonly code = 'ERR_LEASE_EXPIRED' as const;

  /** The time that the lease could last, with its extensions, in ms. */
  readonly lifetime: number;

  constructor(lifetime: number, facts?: ErrorFacts) {
    super(
      `The lease reached its lifetime of ${duration(lifetime)}: its browser is released. ` +
        'For longer work, increase lifetime.',
      facts,
    );
    this.lifetime = lifetime;
  }
}

/** Returns true if the lease lasted as long as the option `lifetime` allows. */
export function isLeaseExpiredError(error: unknown): error is LeaseExpiredError {
  return isError(error) && error.name === 'LeaseExpiredError' && 'lifetime' in error;
}

/** The browser could not be cleaned, or another step of the end failed. The message says which. The run does not fail. */
export class CleanupError extends PooledBrowserError {
  override readonly name = 'CleanupError' as const;
  override readonly code = 'ERR_CLEANUP' as const;
}

/** An artifact could not be collected. For example, the page did not respond. The run does not fail. */
export class ArtifactError extends PooledBrowserError {
  override readonly name = 'ArtifactError' as const;
  override readonly code = 'ERR_ARTIFACT' as const;
}

/** A download did not arrive. For example, it was still running at the end of the lease. The run does not fail. */
export class DownloadError extends PooledBrowserError {
  override readonly name = 'DownloadError' as const;
  override readonly code = 'ERR_DOWNLOAD' as const;

  /** The file name that the server or the page suggested. It comes from outside. */
  readonly suggestedFilename: string;

  constructor(message: string, suggestedFilename: string, facts?: ErrorFacts) {
    super(message, facts);
    this.suggestedFilename = suggestedFilename;
  }
}

/** A task did not finish within the option `taskTimeout`. */
export class TaskTimeoutError extends PooledBrowserError {
  override readonly name = 'TaskTimeoutError' as const;
  override readonly code = 'ERR_TASK_TIMEOUT' as const;

  /** The timeout in ms. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    const message = `The task did not finish within ${duration(timeout)} (option taskTimeout). Its page was closed.`;
    super(message, facts);
    this.timeout = timeout;
  }
}

/** A task returned a value that is not data, such as a page. The value can't be stored as a result. */
export class TaskResultError extends PooledBrowserError {
  override readonly name = 'TaskResultError' as const;
  override readonly code = 'ERR_TASK_RESULT' as const;
}

/**
 * The number of failed inputs reached the option `stopAfterFailures`. The error of the last failed input is the
 * `cause`.
 */
export class TooManyFailuresError extends PooledBrowserError {
  override readonly name = 'TooManyFailuresError' as const;
  override readonly code = 'ERR_TOO_MANY_FAILURES' as const;

  /** Number of inputs that failed. */
  readonly failures: number;

  constructor(failures: number, facts?: ErrorFacts) {
    const inputs = failures === 1 ? '1 input' : `${failures} inputs`;
    super(`The job stopped, because ${inputs} failed (option stopAfterFailures).`, facts);
    this.failures = failures;
  }
}

/** A checkpoint file can't be read or written. */
export class CheckpointError extends PooledBrowserError {
  override readonly name = 'CheckpointError' as const;
  override readonly code = 'ERR_CHECKPOINT' as const;
}

/** A queue can't be used. Its Redis is unreachable or refuses commands, or another process collects its outcomes. */
export class QueueError extends PooledBrowserError {
  override readonly name = 'QueueError' as const;
  override readonly code = 'ERR_QUEUE' as const;
}

/** The local pool, or one of its browsers, could not start. */
export class LocalPoolError extends PooledBrowserError {
  override readonly name = 'LocalPoolError' as const;
  override readonly code = 'ERR_LOCAL_POOL' as const;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}

/** The local pool found no Chrome or Chromium on this machine. */
export class BrowserNotFoundError extends PooledBrowserError {
  override readonly name = 'BrowserNotFoundError' as const;
  override readonly code = 'ERR_BROWSER_NOT_FOUND' as const;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
