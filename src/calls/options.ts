import { verifyConnection } from '../lease/verify-connection.js';
import {
  impliedContext,
  OF_BROWSER,
  PLAYWRIGHT_OPTIONS,
  PUPPETEER_OPTIONS,
} from '../drivers/context-options.js';
import type { CheckingConnector, Connector } from '../drivers/connector.js';
import {
  featureChecks,
  optionsOfEnvironment,
  verifyFeatures,
  type FeatureAcquireOptions,
  type FeatureConnectOptions,
  type FeatureLeaseOptions,
  type FeatureProxyOptions,
  type FeatureReleaseOptions,
  type FeatureRunOptions,
  type FeatureSettings,
} from '../features/options.js';
import {
  acquisitionChecks,
  callbackChecks,
  connectionChecks,
  endChecks,
  reconnectChecks,
  type AcquisitionOptions,
  type CallbackOptions,
  type ConnectionOptions,
  type EndOptions,
  type LeaseSettings,
  type LibraryTypes,
  type ReconnectOptions,
  type ReleaseOption,
} from '../lease/options.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, showValue } from '../shared/json.js';
import {
  callback,
  checksOf,
  flag,
  milliseconds,
  notNegative,
  optional,
  readOptions,
  text,
  wholeNumber,
  type Checked,
  type Checks,
} from '../shared/options.js';
import type { ProxyEvent, RunEvent } from './events.js';

/** How a browser is acquired. */
export interface LeaseAcquireOptions extends AcquisitionOptions, FeatureAcquireOptions {}

/** How the library connects, and what the browser reaches and downloads. */
export interface LeaseConnectOptions<Library extends LibraryTypes = LibraryTypes>
  extends ConnectionOptions<Library>, FeatureConnectOptions {}

/** How a lease ends, and what is reported. */
export interface LeaseReleaseOptions<Session extends object = BrowserSession>
  extends EndOptions<Session>, FeatureReleaseOptions {
  /** Called with every event of the call. */
  onEvent?: ((event: RunEvent<Session>) => void) | undefined;
}

/** Options of a lease that are common to all functions. */
export interface LeaseOptions<
  Library extends LibraryTypes = LibraryTypes,
  Session extends object = BrowserSession,
>
  extends
    LeaseAcquireOptions,
    LeaseConnectOptions<Library>,
    FeatureLeaseOptions,
    LeaseReleaseOptions<Session> {}

/**
 * Options of `withPooledBrowser`, by what they are for. Most calls need at most the first five.
 *
 * - The five to begin with: `replays`, `timeout`, `acquireTimeout`, `contextOptions`, `release`
 * - The wait for a browser: `signal`, `unreachableTimeout`, `pollTimeout`, `failoverAfter`, `retry`, `connectAttempts`
 * - The lease and its session: `name`, `tags`, `owner`, `sessionOptions`, `startUrl`, `lifetime`, `maxLifetime`
 * - The connection: `context`, `connectTimeout`, `protocol`, `connectOptions`
 * - What pages reach: `exposeNetwork`, `allowedHosts`
 * - Recordings, files and events: `recording`, `replaysTimeout`, `artifacts`, `downloads`, `onEvent`
 * - The release: `releaseTimeout`, `awaitRelease`, `releaseOnCrash`
 */
export interface RunOptions<
  Library extends LibraryTypes = LibraryTypes,
  Session extends object = BrowserSession,
>
  extends LeaseOptions<Library, Session>, FeatureRunOptions, CallbackOptions {}

/** Options of `leaseBrowser`. */
export interface HeldLeaseOptions<
  Library extends LibraryTypes = LibraryTypes,
  Session extends object = BrowserSession,
>
  extends LeaseOptions<Library, Session>, ReconnectOptions {}

/** Options of `attachBrowser`, which acquires nothing. */
export interface AttachOptions<
  Library extends LibraryTypes = LibraryTypes,
  Session extends object = BrowserSession,
>
  extends LeaseConnectOptions<Library>, LeaseReleaseOptions<Session>, ReconnectOptions {
  /** The pool of the lease. Default: the pool of that id or name at the service of the environment. */
  pool?: BrowserPool<Session> | string | undefined;
}

/** Options of `serveProxy`. Those of a lease apply to the lease of each client. */
export interface ProxyOptions<Session extends object = BrowserSession>
  extends
    LeaseAcquireOptions,
    Pick<LeaseOptions, 'connectTimeout'>,
    FeatureProxyOptions,
    Omit<LeaseReleaseOptions<Session>, 'signal'> {
  /**
   * TCP port on 127.0.0.1; 0 for any free port.
   * @default 0
   */
  port?: number | undefined;
  /**
   * Whether the path has a secret: that of `BROWSER_POOL_PROXY_SECRET`, or a random one. `false`: every program and every
   * user of this machine can use the pool. Web pages never can.
   * @default true
   */
  secret?: boolean | undefined;
  /**
   * Time in ms that a browser with a name waits for its next client.
   * @default 60_000
   */
  keep?: number | undefined;
  /**
   * Time in ms without a command after which a client is disconnected; 0: never. Its browser is released. While a command of the client
   * has no response, it is not idle. A person at the live view sends no command: use 0 where people work for longer.
   * @default 3_600_000
   */
  idleTimeout?: number | undefined;
  /**
   * All clients use one browser, also at the same time. It is leased for the first client, and released by `close()`, or when
   * no client has sent a command for `idleTimeout`. Only with this option, `name` names the lease.
   * @default false
   */
  share?: boolean | undefined;
  /**
   * Path of a file by which browsers with a name outlive this proxy. After `close()` or SIGKILL, they stay leased, and a
   * later proxy with the same file finds each when a client of its name comes. If none comes back, the inactivity timeout
   * of the service ends the leases; `releaseOnCrash` does not. Needs `lifetime`, and the service `kernel` or `steel`; not
   * with `share`, `allowedHosts` or `baseUrl: 'local'`. The file has no URL and no token.
   */
  keepFile?: string | undefined;
  /** Called with every event of a client. */
  onClient?: ((event: ProxyEvent) => void) | undefined;
}

/** Options of a lease without a connection. */
export interface SessionLeaseOptions<Session extends object = BrowserSession>
  extends LeaseAcquireOptions, LeaseReleaseOptions<Session> {}

const leaseAcquireChecks = checksOf<LeaseAcquireOptions>()({
  ...acquisitionChecks,
  ...featureChecks.acquire,
});

const leaseReleaseChecks = checksOf<LeaseReleaseOptions<never>>()({
  ...endChecks,
  ...featureChecks.release,
  onEvent: optional(callback<(event: RunEvent<never>) => void>()),
});

const leaseConnectChecks = checksOf<LeaseConnectOptions>()({
  ...connectionChecks,
  ...featureChecks.connect,
});

export const leaseChecks = checksOf<LeaseOptions<LibraryTypes, never>>()({
  ...leaseAcquireChecks,
  ...leaseConnectChecks,
  ...featureChecks.lease,
  ...leaseReleaseChecks,
});

export const runChecks = checksOf<RunOptions<LibraryTypes, never>>()({
  ...leaseChecks,
  ...featureChecks.run,
  ...callbackChecks,
});

export const heldLeaseChecks = checksOf<HeldLeaseOptions<LibraryTypes, never>>()({
  ...leaseChecks,
  ...reconnectChecks,
});

export const attachChecks = checksOf<Omit<AttachOptions<LibraryTypes, never>, 'pool'>>()({
  ...leaseConnectChecks,
  ...leaseReleaseChecks,
  ...reconnectChecks,
});

const { signal: _signal, ...unsignalledChecks } = leaseReleaseChecks;

export const proxyChecks = checksOf<ProxyOptions<never>>()({
  ...leaseAcquireChecks,
  ...unsignalledChecks,
  ...featureChecks.proxy,
  connectTimeout: connectionChecks.connectTimeout,
  port: optional(wholeNumber(0, 65_535), 0),
  secret: optional(flag(), true),
  keep: optional(milliseconds(), 60_000),
  idleTimeout: optional(notNegative('a number of milliseconds'), 3_600_000),
  share: optional(flag(), false),
  keepFile: optional(text()),
  onClient: optional(callback<(event: ProxyEvent) => void>()),
});

/** The checked options of a proxy. The functions whose argument has the session are not called here. */
export interface ProxySettings extends Omit<Checked<typeof proxyChecks>, keyof SessionOptions<never>> {}

export const sessionLeaseChecks = checksOf<SessionLeaseOptions<never>>()({
  ...leaseAcquireChecks,
  ...leaseReleaseChecks,
});

/** Each option of a lease is of one of these callers. */
const allChecks = { ...runChecks, ...heldLeaseChecks };
/** The defaults are calculated at the first call: an import checks no options. */
let defaults: Checked<typeof allChecks> | undefined;

/** All options of a lease with their defaults: those of the heart, and those of its features. */
export type AllSettings<Session extends object = object> = LeaseSettings<Session> & FeatureSettings;

/** The options of a caller that are read here. */
interface GivenOptions<Session extends object> extends SessionOptions<Session> {
  readonly context?: unknown;
  readonly contextOptions?: unknown;
}

/** The functions of the caller whose argument has the session. */
interface SessionOptions<Session extends object> {
  readonly release?: ReleaseOption<Session> | undefined;
  readonly onEvent?: ((event: RunEvent<Session>) => void) | undefined;
}

/**
 * Checks the options of a call and fills in all defaults.
 *
 * @param checks The options that the caller takes.
 */
export function readLeaseOptions<C extends Checks, Session extends object>(
  checks: C,
  given: GivenOptions<Session>,
  { caller, connector }: { caller: string; connector?: CheckingConnector },
): AllSettings<Session> & Omit<Checked<C>, keyof SessionOptions<Session>> {
  if (isRecord(given)) refuseMisplaced(checks, given, caller);
  defaults ??= readOptions(allChecks, {}, 'a lease');
  const named = Object.entries(readOptions(checks, given, caller));
  const read = {
    ...defaults,
    ...optionsOfEnvironment(checks),
    // An option that is undefined is not given: it must not hide a limit of the environment.
    ...(Object.fromEntries(named.filter(([, value]) => value !== undefined)) as Checked<C>),
    ...impliedContext(given),
  };
  verifyConnection(read, connector);
  Object.assign(read, verifyFeatures(read, connector));
  // The checks return the functions of the caller as they are: those that receive the session have its type.
  return read as AllSettings<Session> & Omit<Checked<C>, keyof SessionOptions<Session>>;
}

/** Options of something else, which a similar name would not help to find, and where they belong. */
const PLACES: readonly (readonly [names: readonly string[], advice: (name: string) => string])[] = [
  [
    ['token', 'baseUrl', 'service', 'insecure', 'local', 'limit', 'proxy'],
    (name) => `It is an option of the pool: new BrowserPool(idOrName, { ${name} }).`,
  ],
  [
    [...PLAYWRIGHT_OPTIONS, ...PUPPETEER_OPTIONS],
    (name) => `It is an option of a context: pass contextOptions: { ${name} }.`,
  ],
  [
    [
      'headers',
      'slowMo',
      'defaultViewport',
      'protocolTimeout',
      'acceptInsecureCerts',
      'targetFilter',
      'artifactsDir',
      'noDefaults',
      'isLocal',
    ],
    (name) => `It is an option of the automation library: pass connectOptions: { ${name} }.`,
  ],
  [['args', 'channel', 'executablePath', 'headless', 'launchOptions', 'userDataDir'], () => OF_BROWSER],
];

function refuseMisplaced(checks: object, given: object, caller: string): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(checks, name)) continue;
    const [, advice] = PLACES.find(([names]) => names.includes(name)) ?? [];
    if (advice) throw new InvalidOptionError(name, `${caller} has no option ${name}. ${advice(name)}`);
  }
}

/**
 * Separates the connector from the options of a function that works with any automation library.
 *
 * @throws InvalidOptionError without a connector: before anything is sent.
 */
export function readConnector<Handles, Options extends { connector: Connector<Handles> }>(
  options: Options,
  caller: string,
): { connector: Connector<Handles>; rest: Omit<Options, 'connector'> } {
  if (!isRecord(options)) throw new InvalidOptionError('options', noConnector(caller, options));
  const { connector, ...rest } = options;
  const isFunction = (part: string) => typeof Reflect.get(connector, part) === 'function';
  if (isRecord(connector) && ['connect', 'load', 'refusal'].every(isFunction)) return { connector, rest };
  throw new InvalidOptionError('connector', noConnector(caller, connector));
}

function noConnector(caller: string, given: unknown): string {
  const found = given === undefined ? '' : `, not ${showValue(given)}`;
  return (
    `${caller} of this entry works with any automation library and needs { connector }${found}: playwright() of ` +
    "'pooled-browser/playwright', or puppeteer() of 'pooled-browser/puppeteer'. The functions of these entries need none."
  );
}
