import { isRecord, showValue } from '../shared/json.js';
import {
  abortSignal,
  anyOf,
  callback,
  check,
  checked,
  checksOf,
  flag,
  group,
  milliseconds,
  notNegative,
  oneOf,
  optional,
  text,
  wholeNumber,
  type Check,
} from '../shared/options.js';
import { proxyFault } from '../shared/network.js';
import { isPageUrl, pathSegmentFault } from '../shared/urls.js';
import type { BrowserService, ReplayRequest, SessionOptions } from '../services/browser-service.js';
import type { PoolEvent } from './events.js';
import type { AcquireRequest, BrowserSession } from '../services/kernel-api.js';

/** A token, or a function that returns one: called before each request, and again after a 401. */
export type Token = string | (() => string | Promise<string>);

/** A browser that a local pool starts. */
export type LocalBrowserKind = 'chromium' | 'firefox';

/** Settings of browsers on this machine. */
export interface LocalOptions {
  /**
   * `'firefox'`: for Puppeteer with `protocol: 'bidi'`, without recordings. Other uses are refused.
   * @default 'chromium'
   */
  browser?: LocalBrowserKind | undefined;
  /**
   * Maximum number of browsers. They start when they are needed. Default: `BROWSER_POOL_LOCAL_SIZE`, or one for each core
   * and 400 MB. In a container, its own cores and memory count.
   */
  size?: number | undefined;
  /**
   * Leases after which a browser is replaced. A browser that holds more memory than its share of
   * the machine, at most 1 GB, is replaced earlier (on Linux).
   * @default 100
   */
  maxLeases?: number | undefined;
  /**
   * Opens windows, for people who watch. It needs a whole Chromium or Firefox; without a screen, Xvfb is started. Default:
   * whether `BROWSER_POOL_LOCAL_HEADFUL` is `1`.
   */
  headful?: boolean | undefined;
  /**
   * Gives each session a page to watch and control it (`liveViewUrl`), also without a window. Browsers with windows always
   * have it.
   * @default false
   */
  liveView?: boolean | undefined;
  /**
   * Additional flags of the browser, such as `['--proxy-server=127.0.0.1:8080']`. The pool sets the folder of the profile and the remote debugging flags.
   * @default []
   */
  args?: readonly string[] | undefined;
  /**
   * Folder of the recordings, which stay after the process. Each has a folder with its video and a page that shows the
   * video and its timeline. `replay_view_url` is the `file:` URL of the page. The folder is created for the first
   * recording. Default: `BROWSER_POOL_LOCAL_RECORDINGS`, or `pooled-browser-recordings`.
   */
  recordings?: string | undefined;
  /**
   * Id of a process. All processes that pass the same id share the browsers, which end with that process. Default: the
   * browsers belong to this process.
   */
  owner?: number | undefined;
}

/** Options of `new BrowserPool`. */
export interface BrowserPoolOptions<Session extends object = BrowserSession> {
  /**
   * The service, from `pooled-browser/services`, or one of your own. Default: `BROWSER_POOL_SERVICE`, or `kernel`.
   */
  service?: BrowserService<Session> | undefined;
  /**
   * Address of the service, or `'local'` for Chromium on this machine. It starts with the first request and ends with this
   * process. Default: that of the `service`, or `BROWSER_POOL_BASE_URL`.
   */
  baseUrl?: string | undefined;
  /**
   * The access token. Default: `BROWSER_POOL_ACCESS_TOKEN`. It is sent to the address in `BROWSER_POOL_BASE_URL`; without
   * that variable, to the service of the environment at any address, and never to other services. Then the variable of the
   * service itself counts, such as `BROWSERBASE_API_KEY`, for its own address.
   */
  token?: Token | undefined;
  /** Most leases of this process in this pool at once; further calls wait. Default: the service's limit, or none. */
  limit?: number | undefined;
  /**
   * Allows a service without TLS on another machine, for private networks.
   * @default false
   */
  insecure?: boolean | undefined;
  /**
   * URL of the HTTP proxy of all requests and WebSockets, or `false`. Example: `http://user:password@proxy.example.com:3128`.
   * Loopback is never proxied. Default: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. They count in lower case, too.
   */
  proxy?: string | false | undefined;
  /**
   * Certificates of private authorities, in PEM text, for the service and for a proxy.
   * Node itself reads the environment variable `NODE_EXTRA_CA_CERTS`.
   */
  ca?: string | undefined;
  /** Settings of `baseUrl: 'local'`. */
  local?: LocalOptions | undefined;
}

/** Options of every request of `BrowserPool`. */
export interface RequestOptions {
  /** Aborts the request. A browser that an aborted acquire request still leases is released. */
  signal?: AbortSignal | undefined;
}

/** Whether a lease says who has it. */
export interface OwnerOptions {
  /**
   * Whether the lease has the tag `pooled-browser-owner`, with host name and process id. By it the command `leases` finds
   * the leases of a crashed machine.
   * @default true
   */
  owner?: boolean | undefined;
}

/** Options of `BrowserPool.acquire`. */
export interface AcquireOptions extends RequestOptions, OwnerOptions {
  /** Called when the pool releases a browser on its own, and when an outcome is unknown. */
  onEvent?: ((event: PoolEvent) => void) | undefined;
}

/** Options of `BrowserPool.release`. */
export interface ReleaseOptions extends RequestOptions {
  /**
   * `true`: the browser returns to the pool as it is; `false`: it is destroyed.
   * @default true
   */
  reuse?: boolean | undefined;
  /**
   * Timeout of the request in ms.
   * @default 30_000
   */
  timeout?: number | undefined;
}

/** Options of `BrowserPool.downloadReplay`. */
export interface DownloadOptions extends RequestOptions {
  /**
   * Time to wait until the service has written the video, in ms; the download itself may take longer.
   * @default 60_000
   */
  timeout?: number | undefined;
  /** Called with the number of bytes received, and with the total where the service reports it. */
  onProgress?: ((progress: { received: number; total?: number }) => void) | undefined;
}

const LEASE_NAME = /^[a-zA-Z0-9._-]{1,255}$/;
const MOST_TAGS = 50;

export function leaseName(): Check<string> {
  return check(
    'a string of 1 to 255 letters, digits, dots, underscores or hyphens',
    (name) => typeof name === 'string' && LEASE_NAME.test(name),
  );
}

export function tagsOfLease(): Check<Readonly<Record<string, string>>> {
  return checked((tags) => {
    if (!isRecord(tags) || Object.values(tags).some((value) => typeof value !== 'string'))
      return 'must be an object whose values are strings';
    const count = Object.keys(tags).length;
    return count > MOST_TAGS ? `must have at most ${MOST_TAGS} pairs, not ${count}` : undefined;
  });
}

const size = { width: wholeNumber(1), height: wholeNumber(1) };
const profile = { id: optional(text()), name: optional(text()), save: optional(flag()) };

export const sessionOptionsChecks = checksOf<SessionOptions>()({
  region: optional(text()),
  viewport: optional(group(size, '{ width, height } in pixels')),
  proxy: optional(checked<NonNullable<SessionOptions['proxy']>>(faultInProxy)),
  timeout: optional(milliseconds()),
  stealth: optional(flag()),
  profile: optional(anyOf('an id or a name, or { id or name, save }', text(), group(profile))),
});

/** It does not show the value, which may contain a password. */
function faultInProxy(value: unknown): string | undefined {
  if (typeof value === 'boolean') return undefined;
  if (typeof value === 'string') return proxyFault(value);
  const [[name, given] = [], ...more] = isRecord(value) ? Object.entries(value) : [];
  const isForm =
    (name === 'country' && /^[a-z]{2}$/i.test(String(given))) || (name === 'id' && typeof given === 'string');
  return isForm && more.length === 0
    ? undefined
    : "must be true, false, the URL of a proxy, { country } with two letters, such as { country: 'de' }, or { id }";
}

export function pageUrl(): Check<string> {
  const test = (url: unknown) => typeof url === 'string' && isPageUrl(url);
  return check('an absolute URL (http, https, about or data), such as https://example.com/', test);
}

/** An id or name that becomes one segment of a path. */
export function pathSegment(): Check<string> {
  return checked(pathSegmentFault);
}

/** Returns true for a token that is valid in a header. */
export function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[\x21-\x7e]+$/.test(token);
}

export const tokenCheck: Check<Token> = checked((token) =>
  typeof token === 'function' || isToken(token)
    ? undefined
    : 'must be a string of visible ASCII characters, or a function that returns one',
);

const FLAG = /^--[^\0]+$/;
const POOL_FLAG = /^--(remote-debugging-(port|pipe|address)|user-data-dir|profile)(=|$)/;

export function browserFlags(): Check<readonly string[]> {
  return checked((args) => {
    if (!Array.isArray(args)) return `must be an array of flags, not ${showValue(args)}`;
    const matches = (value: unknown, pattern: RegExp) => typeof value === 'string' && pattern.test(value);
    const wrong: unknown = args.find((arg) => !matches(arg, FLAG) || matches(arg, POOL_FLAG));
    if (wrong === undefined) return undefined;
    return matches(wrong, POOL_FLAG)
      ? `must not contain ${showValue(wrong)}: the pool sets this flag`
      : `must contain flags that begin with "--", not ${showValue(wrong)}`;
  });
}

export const poolChecks = checksOf<BrowserPoolOptions<object>>()({
  // `checkService` explains what is wrong.
  service: optional(check<BrowserService>('a service', () => true)),
  baseUrl: optional(
    check<string>(
      "an absolute URL, such as https://pool.example.com, or 'local'",
      (value) => typeof value === 'string',
    ),
  ),
  token: optional(tokenCheck),
  limit: optional(wholeNumber(1)),
  insecure: optional(flag(), false),
  proxy: optional(checked<string | false>((value) => (value === false ? undefined : proxyFault(value)))),
  ca: optional(
    check<string>(
      'certificates in PEM text, such as the content of a file ca.pem',
      (value) => typeof value === 'string' && value.includes('-----BEGIN CERTIFICATE-----'),
    ),
  ),
  local: optional(
    group(
      checksOf<LocalOptions>()({
        browser: optional(oneOf('chromium', 'firefox')),
        size: optional(wholeNumber(1)),
        maxLeases: optional(wholeNumber(1)),
        headful: optional(flag()),
        liveView: optional(flag(), false),
        args: optional(browserFlags(), []),
        recordings: optional(text()),
        owner: optional(wholeNumber(1)),
      }),
    ),
  ),
});

export const requestChecks = checksOf<RequestOptions>()({ signal: optional(abortSignal()) });

export const ownerChecks = checksOf<OwnerOptions>()({ owner: optional(flag(), true) });

export const acquireChecks = checksOf<AcquireOptions>()({
  ...requestChecks,
  ...ownerChecks,
  onEvent: optional(callback<(event: PoolEvent) => void>()),
});

export const releaseChecks = checksOf<ReleaseOptions>()({
  ...requestChecks,
  reuse: optional(flag(), true),
  timeout: optional(notNegative('a number of milliseconds'), 30_000),
});

export const downloadChecks = checksOf<DownloadOptions>()({
  ...requestChecks,
  timeout: optional(milliseconds(), 60_000),
  onProgress: optional(callback<(progress: { received: number; total?: number }) => void>()),
});

export const acquireRequestChecks = checksOf<AcquireRequest>()({
  acquire_timeout_seconds: optional(wholeNumber(0)),
  name: optional(leaseName()),
  tags: optional(tagsOfLease()),
  start_url: optional(pageUrl()),
});

export const replayRequestChecks = checksOf<ReplayRequest>()({
  frameRate: optional(wholeNumber(1)),
  maxSeconds: optional(wholeNumber(1)),
});
