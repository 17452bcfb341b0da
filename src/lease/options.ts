import { OF_BROWSER, PLAYWRIGHT_OPTIONS, PUPPETEER_OPTIONS } from '../connect/context-options.js';
import { LARGEST_DOWNLOAD, type Connector, type ContextChoice, type Protocol } from '../connect/connector.js';
import { faultInHosts } from '../features/exposed-network/exposed-hosts.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { leaseName, leaseTags, pageUrl } from '../pool/pool-options.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import {
  abortSignal,
  anyOf,
  callback,
  check,
  checked,
  checksOf,
  countOrInfinity,
  flag,
  group,
  milliseconds,
  off,
  oneOf,
  optional,
  readOption,
  readOptions,
  text,
  wholeNumber,
  type Checked,
  type Checks,
} from '../shared/options.js';
import type { ProxyEvent, RunEvent } from './events.js';
import type { LeaseOutcome, ReleaseChoice } from './run.js';

/** Backoff between acquire requests, with the options of p-retry. */
export interface RetryOptions {
  /**
   * Maximum number of retries of one call: of requests that failed, or were answered too early.
   * @default Infinity
   */
  retries?: number | undefined;
  /**
   * Factor by which the backoff grows.
   * @default 2
   */
  factor?: number | undefined;
  /**
   * First backoff in ms.
   * @default 250
   */
  minTimeout?: number | undefined;
  /**
   * Longest backoff in ms.
   * @default 10_000
   */
  maxTimeout?: number | undefined;
  /**
   * Multiplies each backoff by a random factor from 1 to 2.
   * @default true
   */
  randomize?: boolean | undefined;
}

/** How to record a lease. */
export interface RecordingOptions {
  /** Frames per second, 1 to 60. Default: the service's. */
  frameRate?: number | undefined;
  /** Maximum duration in ms, rounded up to seconds. Default: the service's. */
  maxDuration?: number | undefined;
}

/** Which files show what happened in the browser. */
export interface ArtifactsOptions {
  /**
   * Folder for the files, created if it does not exist. Each run or attempt has its own folder there. Nothing is deleted, and
   * other users of the machine can't read the files.
   */
  folder: string;
  /**
   * `'failure'`: only of failed runs, tasks or tests; `'always'`: of all.
   * @default 'failure'
   */
  on?: 'failure' | 'always' | undefined;
  /**
   * A screenshot of each open page, in full length.
   * @default true
   */
  screenshot?: boolean | undefined;
  /**
   * A trace of Playwright, for its trace viewer: of the context that the callback receives. It contains everything that the
   * pages sent and received, with cookies and passwords. Playwright only.
   * @default false
   */
  trace?: boolean | undefined;
  /**
   * The latest 1,000 console messages, page errors and failed requests, as JSON lines.
   * @default true
   */
  console?: boolean | undefined;
}

/** Where the files that the browser downloads arrive. */
export interface DownloadsOptions {
  /** Folder for the files, created if it does not exist. Other users of the machine can't read the files. Nothing is overwritten. */
  folder: string;
  /**
   * Largest file in bytes. A larger one is canceled.
   * @default 1_073_741_824 (1 GiB)
   */
  maxSize?: number | undefined;
  /**
   * Time in ms to wait for downloads that are still running when the callback or the task has ended.
   * @default 30_000
   */
  timeout?: number | undefined;
}

/** How a browser is acquired. */
export interface AcquireSettings {
  /**
   * Name of the lease: 1 to 255 letters, digits, `.`, `_` or `-`, unique among the active leases. With a name, a repeated
   * acquire request can't lease a second browser: it fails with `LeaseNameTakenError`.
   */
  name?: string | undefined;
  /**
   * Up to 50 key-value pairs. The library adds the tag `pooled-browser-lease`, by which it recognizes its own lease.
   */
  tags?: Readonly<Record<string, string>> | undefined;
  /** URL that the service opens in the browser. If it fails to load, the lease continues. Default: the pool's. */
  startUrl?: string | undefined;
  /**
   * Total time to wait for a browser, in ms.
   * @default 300_000
   */
  acquireTimeout?: number | undefined;
  /**
   * Time in ms after which a call fails with `PoolConnectionError` if this process could never connect to the service. After
   * a first connection, only `acquireTimeout` applies, so that calls wait for a service that restarts.
   * @default 30_000
   */
  unreachableTimeout?: number | undefined;
  /**
   * Time that each acquire request asks the service to wait, in ms, rounded up to seconds. `false`: the service decides.
   * @default 25_000
   */
  pollTimeout?: number | false | undefined;
  /** Backoff between acquire requests that fail or are answered too early. */
  retry?: RetryOptions | undefined;
}

/** How a lease ends, and what is reported. */
export interface ReleaseSettings {
  /**
   * `'auto'`: reuse the browser if it is healthy and was cleaned, otherwise destroy it; `'reuse'`: reuse it as it is, with
   * cookies and pages; `'destroy'`; `'leave'`: leave it leased; or a function that returns one of these.
   * @default 'auto'
   */
  release?: 'auto' | ReleaseChoice | ((outcome: LeaseOutcome) => ReleaseChoice) | undefined;
  /**
   * Time to release the browser, in ms. An abort does not shorten it.
   * @default 10_000
   */
  releaseTimeout?: number | undefined;
  /**
   * Starts a small guard process that releases the browser if this process is killed (SIGKILL, out of memory). At any other
   * end of the process, the browser is released without this option. In a worker thread, which receives no signal, each lease
   * has a guard.
   * @default false
   */
  releaseOnCrash?: boolean | undefined;
  /**
   * `'list'`: list the recordings of this lease; `'off'`: do not; `'record'`: record the lease, and wait for the video after
   * the release. If the service can't record, an event `recording-unavailable` is emitted and the run does not fail.
   * @default 'list'
   */
  replays?: 'list' | 'record' | 'off' | undefined;
  /**
   * Time to stop the recording, to list the recordings, and to wait for the video, in ms.
   * @default 10_000
   */
  replaysTimeout?: number | undefined;
  /** How to record, with `replays: 'record'`. */
  recording?: RecordingOptions | undefined;
  /** Aborts the call at any point; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called with every event of the call. */
  onEvent?: ((event: RunEvent) => void) | undefined;
}

/** The types by which automation libraries differ in their options. */
export interface LibraryTypes {
  /** Of the option `connectOptions`. */
  connectOptions: object;
  /** Of the option `contextOptions`. */
  contextOptions: object;
  /** Of the option `protocol`. */
  protocol: Protocol;
  /** Of the option `context`. */
  context: ContextChoice;
}

/** How the library connects. */
export interface ConnectSettings<Library extends LibraryTypes = LibraryTypes> {
  /**
   * Time to connect until a page is usable, in ms.
   * @default 30_000
   */
  connectTimeout?: number | undefined;
  /**
   * `'cdp'`, or with Puppeteer `'bidi'`.
   * @default 'cdp'
   */
  protocol?: Library['protocol'] | undefined;
  /**
   * `'default'`: the browser's own context, with its profile; `'new'`: a fresh one, closed afterwards.
   * @default 'default'
   */
  context?: Library['context'] | undefined;
  /**
   * The automation library's own options of a new context: storage state, locale, viewport, proxy and others. Implies
   * `context: 'new'`.
   */
  contextOptions?: Library['contextOptions'] | undefined;
  /** The automation library's own connect options. */
  connectOptions?: Library['connectOptions'] | undefined;
  /**
   * Hosts of this machine's network that all pages of the leased browser may reach, also those of other sites, in the syntax of
   * Playwright's option of this name: `'localhost:3000'`, `'<loopback>'`, `'*.test.internal,10.0.0.1:8080'`, `'*'`. This
   * process sends their requests. Needs a CDP URL of the session, with any protocol. Default: none.
   */
  exposeNetwork?: string | undefined;
  /**
   * A folder of this machine in which the files arrive that the browser downloads, also a browser on another machine. With
   * `protocol: 'bidi'`, the session needs a CDP URL, too. Default: none.
   */
  downloads?: string | DownloadsOptions | undefined;
}

/** Options of a lease that are common to all functions. */
export interface LeaseOptions<Library extends LibraryTypes = LibraryTypes>
  extends AcquireSettings, ConnectSettings<Library>, ReleaseSettings {
  /**
   * Maximum number of browsers to lease for one call: a browser that can't be reached is released for destruction, and another
   * one leased.
   * @default 2
   */
  connectAttempts?: number | undefined;
}

/** Options of `withPooledBrowser`. */
export interface RunOptions<Library extends LibraryTypes = LibraryTypes> extends LeaseOptions<Library> {
  /**
   * Files that show what happened in the browser, collected before it is cleaned up, within 10 s. Their paths are in
   * `artifacts` of the run. Needs a connector with `observe`. Default: none.
   */
  artifacts?: ArtifactsOptions | undefined;
  /**
   * Time for the callback, in ms.
   * @default Infinity
   */
  timeout?: number | undefined;
  /**
   * `false`: resolve as soon as the release request is on its way; `released` is then `'pending'`, and an event reports the
   * result. `pool.close()` and the end of the process wait for it.
   * @default true
   */
  awaitRelease?: boolean | undefined;
}

/** How a lost connection is replaced. */
export interface ReconnectSettings {
  /**
   * Replaces a lost connection while the session lasts: `'eager'` immediately, `'lazy'` when the browser is next used. No call
   * is repeated. `false`: the browser is lost with its connection.
   * @default false
   */
  reconnect?: 'eager' | 'lazy' | false | undefined;
}

/** Options of `leaseBrowser`. */
export interface HeldLeaseOptions<Library extends LibraryTypes = LibraryTypes>
  extends LeaseOptions<Library>, ReconnectSettings {}

/** Options of `attachBrowser`, which acquires nothing. */
export interface AttachOptions<Library extends LibraryTypes = LibraryTypes>
  extends ConnectSettings<Library>, ReleaseSettings, ReconnectSettings {
  /** The pool of the lease. Default: the pool of that id or name at the service of the environment. */
  pool?: BrowserPool<object> | string | undefined;
}

/** Options of `serveProxy`. Those of a lease apply to the lease of each client. */
export interface ProxyOptions
  extends
    AcquireSettings,
    Pick<LeaseOptions, 'connectTimeout' | 'connectAttempts' | 'exposeNetwork'>,
    Omit<ReleaseSettings, 'signal'> {
  /**
   * TCP port on 127.0.0.1; 0 for any free port.
   * @default 0
   */
  port?: number | undefined;
  /**
   * Whether the address has a random path, without which nobody can connect. `false`: every program and every user of this
   * machine can use the pool. Web pages never can.
   * @default true
   */
  secret?: boolean | undefined;
  /**
   * Time in ms for which a browser with a name stays leased after its client has disconnected.
   * @default 60_000
   */
  keep?: number | undefined;
  /** Time in ms without a command after which a client is disconnected and its browser released. Default: none. */
  idleTimeout?: number | undefined;
  /**
   * All clients use one browser, also at the same time. It is leased for the first client, and released by `close()`, or when
   * no client has sent a command for `idleTimeout`. Only with this option, `name` names the lease.
   * @default false
   */
  share?: boolean | undefined;
  /** Called with every event of a client. */
  onClient?: ((event: ProxyEvent) => void) | undefined;
}

/** Options of a lease without a connection. */
export interface SessionLeaseOptions extends AcquireSettings, ReleaseSettings {}

const notNegative = () =>
  check<number>('a number, 0 or more', (value) => typeof value === 'number' && value >= 0);

const retry = checksOf<RetryOptions>()({
  retries: optional(notNegative(), Number.POSITIVE_INFINITY),
  factor: optional(notNegative(), 2),
  minTimeout: optional(notNegative(), 250),
  maxTimeout: optional(notNegative(), 10_000),
  randomize: optional(flag(), true),
});

const recording = checksOf<RecordingOptions>()({
  frameRate: optional(wholeNumber(1, 60)),
  maxDuration: optional(milliseconds()),
});

const artifacts = checksOf<ArtifactsOptions>()({
  folder: text(),
  on: optional(oneOf('failure', 'always'), 'failure'),
  screenshot: optional(flag(), true),
  trace: optional(flag(), false),
  console: optional(flag(), true),
});

/** The option `artifacts`, for the option sets that have it. */
export const artifactsCheck = { artifacts: optional(group(artifacts)) };

const acquireChecks = checksOf<AcquireSettings>()({
  name: optional(leaseName()),
  tags: optional(leaseTags()),
  startUrl: optional(pageUrl()),
  acquireTimeout: optional(milliseconds(), 300_000),
  unreachableTimeout: optional(milliseconds(), 30_000),
  pollTimeout: optional(anyOf('a number of milliseconds above 0, or false', milliseconds(), off()), 25_000),
  retry: optional(group(retry), {}),
});

const releaseChecks = checksOf<ReleaseSettings>()({
  release: optional(
    anyOf(
      "one of 'auto', 'reuse', 'destroy', 'leave', or a function",
      oneOf('auto', 'reuse', 'destroy', 'leave'),
      callback<(outcome: LeaseOutcome) => ReleaseChoice>(),
    ),
    'auto',
  ),
  releaseTimeout: optional(milliseconds(), 10_000),
  releaseOnCrash: optional(flag(), false),
  replays: optional(oneOf('list', 'record', 'off'), 'list'),
  replaysTimeout: optional(milliseconds(), 10_000),
  recording: optional(group(recording)),
  signal: optional(abortSignal()),
  onEvent: optional(callback<(event: RunEvent) => void>()),
});

const downloads = checksOf<DownloadsOptions>()({
  folder: text(),
  maxSize: optional(countOrInfinity(), LARGEST_DOWNLOAD),
  timeout: optional(milliseconds(), 30_000),
});

const connectChecks = checksOf<ConnectSettings>()({
  connectTimeout: optional(milliseconds(), 30_000),
  protocol: optional(oneOf('cdp', 'bidi'), 'cdp'),
  context: optional(oneOf('default', 'new'), 'default'),
  contextOptions: optional(check<object>('an object', isRecord)),
  connectOptions: optional(check<object>('an object', isRecord), {}),
  exposeNetwork: optional(checked<string>(faultInHosts)),
  // `readDownloads` checks the object: here, the error would not name its wrong part.
  downloads: optional(
    anyOf(
      'a folder, or { folder, maxSize, timeout }',
      text(),
      check<DownloadsOptions>('an object', isRecord),
    ),
  ),
});

const reconnectChecks = checksOf<ReconnectSettings>()({
  reconnect: optional(anyOf("'eager', 'lazy' or false", oneOf('eager', 'lazy'), off()), false),
});

export const leaseChecks = checksOf<LeaseOptions>()({
  ...acquireChecks,
  connectAttempts: optional(wholeNumber(1), 2),
  ...connectChecks,
  ...releaseChecks,
});

export const runChecks = checksOf<RunOptions>()({
  ...leaseChecks,
  ...artifactsCheck,
  timeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
  awaitRelease: optional(flag(), true),
});

export const heldLeaseChecks = checksOf<HeldLeaseOptions>()({ ...leaseChecks, ...reconnectChecks });

export const attachChecks = checksOf<Omit<AttachOptions, 'pool'>>()({
  ...connectChecks,
  ...releaseChecks,
  ...reconnectChecks,
});

const { signal: _signal, ...unsignalledChecks } = releaseChecks;

export const proxyChecks = checksOf<ProxyOptions>()({
  ...acquireChecks,
  ...unsignalledChecks,
  connectTimeout: connectChecks.connectTimeout,
  connectAttempts: leaseChecks.connectAttempts,
  exposeNetwork: connectChecks.exposeNetwork,
  port: optional(wholeNumber(0, 65_535), 0),
  secret: optional(flag(), true),
  keep: optional(milliseconds(), 60_000),
  idleTimeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
  share: optional(flag(), false),
  onClient: optional(callback<(event: ProxyEvent) => void>()),
});

export const sessionLeaseChecks = checksOf<SessionLeaseOptions>()({ ...acquireChecks, ...releaseChecks });

const allChecks = { ...runChecks, ...reconnectChecks };
/** Calculated at the first call: an import checks no options. */
let defaults: Checked<typeof allChecks> | undefined;

/** All options with their defaults. */
export interface LeaseSettings extends Omit<Checked<typeof allChecks>, 'downloads'> {
  readonly downloads?: DownloadsSettings | undefined;
}
/** The checked options `downloads` and `artifacts`. */
export type DownloadsSettings = Checked<typeof downloads>;
export type ArtifactsSettings = Checked<typeof artifacts>;

/** The arguments of the error for a library without traces. */
export const NO_TRACE = [
  'artifacts.trace',
  'Only Playwright records traces: remove artifacts.trace.',
] as const;

/** The parts of a connector that check options. */
export type CheckingConnector = Pick<Connector, 'library' | 'refusal' | 'canTrace' | 'checkContext'>;

/**
 * Checks the options of a call and fills in all defaults.
 *
 * @param checks The options that the caller takes.
 */
export function readLeaseOptions<C extends Checks>(
  checks: C,
  given: object,
  { caller, connector }: { caller: string; connector?: CheckingConnector },
): LeaseSettings & Checked<C> {
  refuseMisplaced(checks, given, caller);
  defaults ??= readOptions(allChecks, {}, 'a lease');
  const read = { ...defaults, ...readOptions(checks, given, caller), ...impliedContext(given) };
  const settings = { ...read, downloads: readDownloads(read.downloads) };
  const { recording, replays } = settings;
  if (recording && replays !== 'record') {
    throw new InvalidOptionError('recording', `recording needs replays: 'record', not '${replays}'.`);
  }
  if (settings.artifacts?.trace && !connector?.canTrace) throw new InvalidOptionError(...NO_TRACE);
  const refusal = connector?.refusal(settings.protocol);
  if (refusal !== undefined) throw new InvalidOptionError('protocol', refusal);
  const { contextOptions, protocol } = settings;
  if (contextOptions) checkContextOptions(contextOptions, protocol, connector);
  return settings;
}

function readDownloads(given: string | DownloadsOptions | undefined): DownloadsSettings | undefined {
  if (given === undefined) return undefined;
  return readOption(group(downloads), 'downloads', typeof given === 'string' ? { folder: given } : given);
}

function impliedContext({ context, contextOptions }: { context?: unknown; contextOptions?: unknown }) {
  if (contextOptions === undefined) return {};
  if (context === 'default') throw new InvalidOptionError(...OWN_CONTEXT);
  return { context: 'new' } as const;
}

/** The arguments of the error for options of the browser's own context. */
export const OWN_CONTEXT = [
  'contextOptions',
  "contextOptions are those of a new context, and context: 'default' is the browser's own one: remove one of them.",
] as const;

function checkContextOptions(options: object, protocol: Protocol, connector?: CheckingConnector): void {
  if (connector?.checkContext) {
    // In a job, the function is called for each task, and the connector checks the result.
    return typeof options === 'function' ? undefined : connector.checkContext(options, protocol);
  }
  const library = connector?.library ?? 'this call';
  throw new InvalidOptionError(
    'contextOptions',
    `The connector of ${library} has no checkContext, which contextOptions needs: open the context in the callback.`,
  );
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

function refuseMisplaced(checks: Checks, given: object, caller: string): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(checks, name)) continue;
    const [, advice] = PLACES.find(([names]) => names.includes(name)) ?? [];
    if (advice) throw new InvalidOptionError(name, `${caller} has no option ${name}. ${advice(name)}`);
  }
}
