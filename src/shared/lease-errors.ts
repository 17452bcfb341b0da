import { PooledBrowserError, type ErrorFacts } from './errors.js';

/** The leased browser could not be reached over its websocket. It is given back as bad. */
export class ConnectError extends PooledBrowserError {
  override readonly name = 'ConnectError' as const;
  declare readonly code: 'ERR_CONNECT';

  /** HTTP status with which the websocket upgrade was refused, where that is what happened. */
  declare readonly status?: number;

  constructor(message: string, { status, ...facts }: ErrorFacts & { status?: number | undefined } = {}) {
    super(message, 'ERR_CONNECT', facts);
    if (status !== undefined) this.status = status;
  }
}

/**
 * How a connection ended before its time:
 * - `dropped`: the socket broke or fell silent;
 * - `closed-by-service`: the other side closed it in due form, as when the browser dies;
 * - `expired`: the other side closed it because the session's time was up;
 * - `closed-by-callback`: the caller's code closed the browser or its connection.
 */
export type LossReason = 'dropped' | 'closed-by-service' | 'expired' | 'closed-by-callback';

/** The browser went away while the callback had it. A run that lost its browser is not a success. */
export class BrowserLostError extends PooledBrowserError {
  override readonly name = 'BrowserLostError' as const;
  declare readonly code: 'ERR_BROWSER_LOST';

  /** How the connection ended. */
  readonly reason: LossReason;

  constructor(message: string, reason: LossReason, facts?: ErrorFacts) {
    super(message, 'ERR_BROWSER_LOST', facts);
    this.reason = reason;
  }
}

/** True when the browser went away while the callback had it. */
export function isBrowserLostError(error: unknown): error is BrowserLostError {
  return error instanceof Error && error.name === 'BrowserLostError' && 'reason' in error;
}

/**
 * The connection ended while `lease.use` was under way, and the lease goes on over a new one. What was called may or may
 * not have happened: it is never repeated for you.
 */
export class ConnectionDroppedError extends PooledBrowserError {
  override readonly name = 'ConnectionDroppedError' as const;
  declare readonly code: 'ERR_CONNECTION_DROPPED';

  constructor(facts?: ErrorFacts) {
    super(
      'The connection to the browser ended while this was under way. It may or may not have happened, and was not ' +
        'repeated: look at the page, then decide.',
      'ERR_CONNECTION_DROPPED',
      facts,
    );
  }
}

/** True when the connection ended during the call, and the lease goes on. */
export function isConnectionDroppedError(error: unknown): error is ConnectionDroppedError {
  return error instanceof Error && error.name === 'ConnectionDroppedError';
}

/** The callback took longer than the option `timeout` allows. */
export class CallbackTimeoutError extends PooledBrowserError {
  override readonly name = 'CallbackTimeoutError' as const;
  declare readonly code: 'ERR_CALLBACK_TIMEOUT';

  /** The limit, in milliseconds. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(
      `The callback did not finish within ${timeout} ms (option timeout). Its connection to the browser was cut.`,
      'ERR_CALLBACK_TIMEOUT',
      facts,
    );
    this.timeout = timeout;
  }
}

/** Pages or contexts of the lease could not be closed: the browser is not fit for the next one. */
export class SweepError extends PooledBrowserError {
  override readonly name = 'SweepError' as const;
  declare readonly code: 'ERR_SWEEP';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_SWEEP', facts);
  }
}

/** A task took longer than the option `taskTimeout` allows. */
export class TaskTimeoutError extends PooledBrowserError {
  override readonly name = 'TaskTimeoutError' as const;
  declare readonly code: 'ERR_TASK_TIMEOUT';

  /** The limit, in milliseconds. */
  readonly timeout: number;

  constructor(timeout: number, facts?: ErrorFacts) {
    super(
      `The task did not finish within ${timeout} ms (option taskTimeout). Its page was closed.`,
      'ERR_TASK_TIMEOUT',
      facts,
    );
    this.timeout = timeout;
  }
}

/** A checkpoint can't be read or written: the file is no checkpoint, or a value has no JSON. */
export class CheckpointError extends PooledBrowserError {
  override readonly name = 'CheckpointError' as const;
  declare readonly code: 'ERR_CHECKPOINT';

  constructor(message: string, facts?: ErrorFacts) {
    super(message, 'ERR_CHECKPOINT', facts);
  }
}

/** The local pool could not start, or could not start a browser. */
export class LocalPoolError extends PooledBrowserError {
  override readonly name = 'LocalPoolError' as const;
  declare readonly code: 'ERR_LOCAL_POOL';

  constructor(message: string, cause?: unknown) {
    super(message, 'ERR_LOCAL_POOL', { cause });
  }
}

/** The local pool found no Chrome or Chromium on this machine. */
export class BrowserNotFoundError extends PooledBrowserError {
  override readonly name = 'BrowserNotFoundError' as const;
  declare readonly code: 'ERR_BROWSER_NOT_FOUND';

  constructor(message: string, cause?: unknown) {
    super(message, 'ERR_BROWSER_NOT_FOUND', { cause });
  }
}
