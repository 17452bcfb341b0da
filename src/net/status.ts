import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';

/** The meaning of an HTTP status. A service can have other meanings: see `meaning` of `BrowserService`. */
export interface StatusMeaning {
  /**
   * Of an acquire request: no browser is available and none was leased; or the service refused; or it is unknown
   * whether a browser was leased.
   */
  readonly acquire: 'unavailable' | 'refused' | 'unknown';
  /** Of a release request: nothing happened; the service reports that the release failed; or it may have happened. */
  readonly release: 'none' | 'failed' | 'unknown';
  /** The same request can succeed later. */
  readonly isTransient: boolean;
  /** The service itself has a problem: only one caller at a time sends requests until it works again. */
  readonly isOutage: boolean;
  /** The session can't be used any more. */
  readonly endsSession: boolean;
  /** The service has no such path, or no such session. */
  readonly isAbsent: boolean;
}

const REFUSED: StatusMeaning = {
  acquire: 'refused',
  release: 'none',
  isTransient: false,
  isOutage: false,
  endsSession: false,
  isAbsent: false,
};
const ABSENT: StatusMeaning = { ...REFUSED, isAbsent: true };
const SESSION_ENDED: StatusMeaning = { ...REFUSED, endsSession: true };
const UNAVAILABLE: StatusMeaning = { ...REFUSED, acquire: 'unavailable', isTransient: true };
const OVERLOADED: StatusMeaning = { ...UNAVAILABLE, isOutage: true };
/** Any other 5xx: the service may have leased a browser before it failed. */
const FAILED: StatusMeaning = { ...OVERLOADED, acquire: 'unknown', release: 'failed' };

const TABLE: Readonly<Record<number, StatusMeaning>> = {
  401: SESSION_ENDED,
  403: SESSION_ENDED,
  404: { ...SESSION_ENDED, isAbsent: true },
  405: ABSENT,
  408: UNAVAILABLE,
  // Can also mean that the name of the lease is in use: see `isNameConflict`.
  409: UNAVAILABLE,
  410: { ...SESSION_ENDED, isAbsent: true },
  429: OVERLOADED,
  501: { ...FAILED, isAbsent: true },
  // These two come from a gateway, which has no information about what the service did.
  502: { ...FAILED, release: 'unknown' },
  503: OVERLOADED,
  504: { ...OVERLOADED, release: 'unknown' },
};

export function meaningOf(status: number): StatusMeaning {
  return TABLE[status] ?? (status >= 500 ? FAILED : REFUSED);
}

/**
 * Where the connection is the lease: whether the answer to its upgrade means that no browser is available now. Without a
 * connection none was leased, so a gateway whose service restarts is waited for, too.
 */
export function refusesUpgrade(status: number): boolean {
  return status === 502 || meaningOf(status).acquire === 'unavailable';
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Returns true if a session no longer exists, by the answer to its release. */
export function isGone(status: number, gone: readonly number[] = []): boolean {
  return status === 404 || status === 410 || gone.includes(status);
}

/** Returns true if the same request can succeed later. */
export function isTransientError(error: unknown): boolean {
  if (error instanceof PoolServiceError) return meaningOf(error.status).isTransient;
  if (error instanceof PoolConnectionError) return !error.isPermanent;
  return error instanceof PoolResponseError;
}
