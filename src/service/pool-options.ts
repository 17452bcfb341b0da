import { isRecord } from '../shared/json.js';
import {
  abortSignal,
  callback,
  check,
  checked,
  flag,
  group,
  milliseconds,
  optional,
  wholeNumber,
  withDefault,
  type Option,
  type OptionsInput,
} from '../shared/options.js';
import { isPageUrl } from '../shared/urls.js';
import type { PoolEvent } from './events.js';
import type { Replay } from './wire.js';

const LEASE_NAME = /^[a-zA-Z0-9._-]{1,255}$/;
const MOST_TAGS = 50;
/** Longest id or name in a path. */
const LONGEST_SEGMENT = 255;

/** The lease's name (API: Limits). */
export function leaseName(): Option<string> {
  return check(
    'a string of 1 to 255 letters, digits, dots, underscores or hyphens',
    (name) => typeof name === 'string' && LEASE_NAME.test(name),
  );
}

/** Tags of a lease (API: Limits). */
export function leaseTags(): Option<Readonly<Record<string, string>>> {
  return checked((tags) => {
    if (!isRecord(tags) || Object.values(tags).some((value) => typeof value !== 'string'))
      return 'must be an object whose values are strings';
    const count = Object.keys(tags).length;
    return count > MOST_TAGS ? `must have at most ${MOST_TAGS} pairs, not ${count}` : undefined;
  });
}

export function pageUrl(): Option<string> {
  const test = (url: unknown) => typeof url === 'string' && isPageUrl(url);
  return check('an absolute URL (http, https, about or data), such as https://example.com/', test);
}

/** An id or name that becomes one segment of a path. */
export function pathSegment(): Option<string> {
  return checked(pathSegmentFault);
}

/** Returns why a value can't be one segment of a path: it could reach another endpoint, encoded or not. */
export function pathSegmentFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${typeof value}`;
  if (value.trim() === '') return 'must not be empty';
  if (value === '.' || value === '..') return 'must not be a relative path';
  if (/[/\\%]/.test(value)) return 'must not contain a slash, a backslash or a percent sign';
  if (/\p{Cc}/u.test(value)) return 'must not contain control characters';
  if (!value.isWellFormed()) return 'must be well-formed Unicode';
  if (value.length > LONGEST_SEGMENT) return `must be at most ${LONGEST_SEGMENT} characters long`;
  return undefined;
}

/** A bearer token, or a function that returns one: called before each request, and again after a 401. */
export type Token = string | (() => string | Promise<string>);

/** Returns true for a token that is valid in a header. */
export function isToken(token: unknown): boolean {
  return typeof token === 'function' || (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token));
}

/** The argument of the functions of the option `endpoints`. */
export interface EndpointRequest {
  /** Id or name of the pool. */
  pool: string;
  /** `session_id` of the browser. */
  sessionId: string;
  /** Aborts when the result is no longer needed. */
  signal: AbortSignal;
  /**
   * Sends an authorized request to the service.
   *
   * @param path The path below `baseUrl`, such as `/sessions/abc/return`.
   * @param body An object that is sent as JSON.
   * @returns The JSON of the response, or `undefined` if its body is empty.
   * @throws PoolServiceError, PoolConnectionError, PoolResponseError
   */
  send(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<unknown>;
}

const endpoints = {
  /** Releases a browser. Default: `POST /browser_pools/{pool}/release`. */
  release: optional(callback<(request: EndpointRequest & { reuse: boolean }) => unknown>()),
  /** Starts a recording. Default: `POST /browsers/{id}/replays`. */
  startReplay: optional(callback<(request: EndpointRequest & ReplayRequest) => Replay | Promise<Replay>>()),
  /** Stops a recording. Default: `POST /browsers/{id}/replays/{replay_id}/stop`. */
  stopReplay: optional(callback<(request: EndpointRequest & { replayId: string }) => unknown>()),
};

const localOptions = {
  /**
   * Maximum number of browsers, which start when they are needed. Default: the environment variable
   * `BROWSER_POOL_LOCAL_SIZE`, or the number of processor cores.
   */
  size: optional(wholeNumber(1)),
  /**
   * Id of a process. All processes that pass the same id share the browsers, which end with that process. Default: the
   * browsers belong to this process.
   */
  owner: optional(wholeNumber(1)),
};

export const poolOptions = {
  /**
   * Address of the service, or `'local'` for Chromium on this machine, which starts with the first request and ends with
   * this process (extension). Default: the environment variable `BROWSER_POOL_BASE_URL`.
   */
  baseUrl: optional(
    check<string>(
      "an absolute URL, such as https://pool.example.com, or 'local'",
      (value) => typeof value === 'string',
    ),
  ),
  /** The access token. Default: the environment variable `BROWSER_POOL_ACCESS_TOKEN`. */
  token: optional(checked<Token>((token) => (isToken(token) ? undefined : TOKEN_FAULT))),
  /** Settings of `baseUrl: 'local'`. */
  local: optional(group(localOptions)),
  /**
   * Functions for a service that releases or records browsers in another way (extension). At process exit, when only
   * synchronous work is possible, and after a crash, a function of this process can't release a browser.
   */
  endpoints: optional(group(endpoints)),
};

const TOKEN_FAULT = 'must be a string of visible ASCII characters, or a function that returns one';

export const requestOptions = {
  /** Aborts the request. A browser that an aborted acquire request still leases is released. */
  signal: optional(abortSignal()),
};

export const acquireOptions = {
  ...requestOptions,
  /** Called when the pool releases a browser on its own, and when an outcome is unknown. */
  onEvent: optional(callback<(event: PoolEvent) => void>()),
};

export const releaseOptions = {
  ...requestOptions,
  /** `true`: the browser returns to the pool as it is; `false`: it is destroyed. Default: `true`. */
  reuse: withDefault(flag(), true),
  /** Timeout of the request in ms. Default: 30,000. */
  timeout: withDefault(
    check<number>('a number of milliseconds, 0 or more', (value) => typeof value === 'number' && value >= 0),
    30_000,
  ),
};

export const downloadOptions = {
  ...requestOptions,
  /** Time to wait until the service has written the video, in ms; the download itself may take longer. Default: 60,000. */
  timeout: withDefault(milliseconds(), 60_000),
  /** Called with the number of bytes received, and with the total where the service reports it. */
  onProgress: optional(callback<(progress: { received: number; total?: number }) => void>()),
};

export const acquireRequest = {
  /** Seconds to wait for a browser, a whole number. Default: the service's, which can be minutes. */
  acquire_timeout_seconds: optional(wholeNumber(0)),
  /** Name of the lease: 1 to 255 letters, digits, `.`, `_` or `-`; unique among the active leases. */
  name: optional(leaseName()),
  /** Up to 50 key-value pairs. */
  tags: optional(leaseTags()),
  /** URL to open. If it fails to load, the acquire request succeeds anyway. */
  start_url: optional(pageUrl()),
};

export const replayRequest = {
  /** Frames per second. Default: the service's. */
  framerate: optional(wholeNumber(1)),
  /** Seconds after which the recording ends, a whole number. Default: the service's. */
  max_duration_in_seconds: optional(wholeNumber(1)),
};

/** Options of `new BrowserPool`. */
export interface BrowserPoolOptions extends OptionsInput<typeof poolOptions> {}
/** Settings of Chromium on this machine (extension). */
export interface LocalOptions extends OptionsInput<typeof localOptions> {}
/** Functions for a service with other paths (extension). */
export interface EndpointOptions extends OptionsInput<typeof endpoints> {}
/** Options of every request of `BrowserPool`. */
export interface RequestOptions extends OptionsInput<typeof requestOptions> {}
/** Options of `BrowserPool.acquire`. */
export interface AcquireOptions extends OptionsInput<typeof acquireOptions> {}
/** Options of `BrowserPool.release`. */
export interface ReleaseOptions extends OptionsInput<typeof releaseOptions> {}
/** Options of `BrowserPool.downloadReplay`. */
export interface DownloadOptions extends OptionsInput<typeof downloadOptions> {}
/** Body of an acquire request (API: endpoint 2). */
export interface AcquireRequest extends OptionsInput<typeof acquireRequest> {}
/** Body of a request that starts a recording (extension). */
export interface ReplayRequest extends OptionsInput<typeof replayRequest> {}
