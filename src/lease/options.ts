import type { SessionOptions } from '../services/browser-service.js';
import type { ContextChoice, BrowserProtocol } from '../drivers/connector.js';
import { leaseMark } from '../services/lease-mark.js';
import {
  leaseName,
  ownerChecks,
  sessionOptionsChecks,
  tagsOfLease,
  type OwnerOptions,
} from '../pool/pool-options.js';
import { LONGEST_TIMER } from '../shared/clock.js';
import { isRecord } from '../shared/json.js';
import {
  abortSignal,
  anyOf,
  callback,
  check,
  checksOf,
  countOrInfinity,
  flag,
  group,
  milliseconds,
  notNegative,
  off,
  oneOf,
  optional,
  wholeNumber,
  type Checked,
} from '../shared/options.js';
import type { AnyEvent } from './events.js';
import type { LeaseOutcome, ReleaseChoice } from './summary.js';

/** The work in a connected browser, with what the heart adds to the handles of the library. */
export type WorkWith<Handles, Value, Session extends object> = (
  lease: Handles & { session: Session; signal: AbortSignal },
) => Value | PromiseLike<Value>;

/** Backoff between acquire requests, with the options of p-retry. */
export interface RetryOptions {
  /**
   * Maximum number of retries of one call. Requests that failed, or were answered too early, are retried.
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

const retry = checksOf<RetryOptions>()({
  retries: optional(countOrInfinity(0), Number.POSITIVE_INFINITY),
  factor: optional(notNegative(), 2),
  minTimeout: optional(notNegative('a number of milliseconds', LONGEST_TIMER), 250),
  maxTimeout: optional(notNegative(), 10_000),
  randomize: optional(flag(), true),
});

/** How a browser is acquired. */
export interface AcquisitionOptions extends OwnerOptions {
  /**
   * Name of the lease, unique among the active ones. It has 1 to 255 letters, digits, `.`, `_` or `-`. With a name, a repeated
   * acquire request can't lease a second browser: it fails with `LeaseNameTakenError`.
   */
  name?: string | undefined;
  /**
   * Up to 50 key-value pairs. A service that stores fewer refuses more before the first request. The library adds the tag
   * `pooled-browser-lease`, by which it recognizes its own lease.
   */
  tags?: Readonly<Record<string, string>> | undefined;
  /**
   * What the session should have, in words that mean the same at every service. A service, or a pool, that has nothing like
   * one of them refuses it by name before the first request; of several pools, such a pool is not asked. Default: as the pool is.
   */
  sessionOptions?: SessionOptions | undefined;
  /**
   * Total time to wait for a browser, in ms.
   * @default 300_000
   */
  acquireTimeout?: number | undefined;
  /**
   * Time to reach the service for the first time, in ms; then the call fails with `PoolConnectionError`. After
   * a first connection, only `acquireTimeout` applies, so that calls wait for a service that restarts.
   * @default 30_000
   */
  unreachableTimeout?: number | undefined;
  /**
   * Time in ms after which the next of several pools is asked. A pool that can't be reached, has an
   * outage, or refuses for quota or payment is left at once.
   * @default 10_000
   */
  failoverAfter?: number | undefined;
  /**
   * Time that each acquire request asks the service to wait, in ms, rounded up to seconds. It is shorter where an earlier call with
   * another name or other tags would lose its place. `false`: the service decides.
   * @default 25_000
   */
  pollTimeout?: number | false | undefined;
  /** Backoff between acquire requests that fail or are answered too early. */
  retry?: RetryOptions | undefined;
  /**
   * Maximum number of browsers to lease for one call. A browser that can't be reached is released for destruction, and
   * another one leased.
   * @default 2
   */
  connectAttempts?: number | undefined;
}

export const acquisitionChecks = checksOf<AcquisitionOptions>()({
  ...ownerChecks,
  name: optional(leaseName()),
  tags: optional(tagsOfLease()),
  sessionOptions: optional(group(sessionOptionsChecks)),
  acquireTimeout: optional(milliseconds(), 300_000),
  unreachableTimeout: optional(milliseconds(), 30_000),
  failoverAfter: optional(milliseconds(), 10_000),
  pollTimeout: optional(anyOf('a number of milliseconds above 0, or false', milliseconds(), off()), 25_000),
  retry: optional(group(retry), {}),
  connectAttempts: optional(wholeNumber(1), 2),
});

/** Who leases, when, and for how long, for the tag of the lease. @param endsAfter In ms. */
export const markOf = ({ owner }: Checked<typeof acquisitionChecks>, endsAfter: number | undefined) =>
  owner ? leaseMark(endsAfter) : undefined;

/** How a lease ends. */
export interface EndOptions<Session extends object = object> {
  /**
   * `'auto'`: clean and reuse the browser, or destroy it; `'reuse'`: as it is; `'destroy'`; `'leave'`: leave it leased; or
   * a function that returns one of these. `'auto'` destroys a browser that is unhealthy or could not be cleaned, and is the
   * choice if the function throws.
   * @default 'auto'
   */
  release?: 'auto' | ReleaseChoice | ((outcome: LeaseOutcome<Session>) => 'auto' | ReleaseChoice) | undefined;
  /**
   * Time to release the browser, in ms. An abort does not shorten it.
   * @default 10_000
   */
  releaseTimeout?: number | undefined;
  /**
   * Releases the browser also if this process is killed (SIGKILL, out of memory). A small guard process does so. At any other
   * end of the process, the browser is released without this option. In a worker thread, which receives no signal, each lease
   * has a guard.
   * @default false
   */
  releaseOnCrash?: boolean | undefined;
  /** Aborts the call at any point. The promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** The option `release`. */
export type ReleaseOption<Session extends object> = NonNullable<EndOptions<Session>['release']>;

export const endChecks = checksOf<EndOptions<never>>()({
  release: optional(
    anyOf(
      "one of 'auto', 'reuse', 'destroy', 'leave', or a function",
      oneOf('auto', 'reuse', 'destroy', 'leave'),
      callback<(outcome: LeaseOutcome<never>) => 'auto' | ReleaseChoice>(),
    ),
    'auto',
  ),
  releaseTimeout: optional(milliseconds(), 10_000),
  releaseOnCrash: optional(flag(), false),
  signal: optional(abortSignal()),
});

/** The types by which automation libraries differ in their options. */
export interface LibraryTypes {
  /** The type of the option `connectOptions`. */
  connectOptions: object;
  /** The type of the option `contextOptions`. */
  contextOptions: object;
  /** The type of the option `protocol`. */
  protocol: BrowserProtocol;
  /** The type of the option `context`. */
  context: ContextChoice;
}

/** How the library connects. */
export interface ConnectionOptions<Library extends LibraryTypes = LibraryTypes> {
  /**
   * Time until a page is usable, in ms.
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
}

export const connectionChecks = checksOf<ConnectionOptions>()({
  connectTimeout: optional(milliseconds(), 30_000),
  protocol: optional(oneOf('cdp', 'bidi'), 'cdp'),
  context: optional(oneOf('default', 'new'), 'default'),
  contextOptions: optional(check<object>('an object', isRecord)),
  connectOptions: optional(check<object>('an object', isRecord), {}),
});

/** How the callback is called, and how long its call waits. */
export interface CallbackOptions {
  /**
   * Time for the callback, in ms.
   * @default Infinity
   */
  timeout?: number | undefined;
  /**
   * `false`: resolve before the browser is cleaned and released. Then `released` is `'pending'`, and events report the results.
   * The library can't reach the browser any longer. `pool.close()` and the end of the process wait for the release.
   * @default true
   */
  awaitRelease?: boolean | undefined;
}

export const callbackChecks = checksOf<CallbackOptions>()({
  timeout: optional(milliseconds(), Number.POSITIVE_INFINITY),
  awaitRelease: optional(flag(), true),
});

/** How a lost connection is replaced. */
export interface ReconnectOptions {
  /**
   * Replaces a lost connection: `'eager'` at once, `'lazy'` at the next use. No call
   * is repeated. `false`: the browser is lost with its connection.
   * @default false
   */
  reconnect?: 'eager' | 'lazy' | false | undefined;
}

export const reconnectChecks = checksOf<ReconnectOptions>()({
  reconnect: optional(anyOf("'eager', 'lazy' or false", oneOf('eager', 'lazy'), off()), false),
});

/** The checked options of the heart that all parts of a lease may read. */
export interface CallSettings
  extends
    Checked<typeof acquisitionChecks>,
    Checked<typeof connectionChecks>,
    Checked<typeof callbackChecks>,
    Checked<typeof reconnectChecks>,
    Omit<Checked<typeof endChecks>, 'release'> {
  /** Receives the events of the call. Declared as a method: the heart passes on the events of its features. */
  onEvent?(event: AnyEvent): void;
}

/** The checked options of the heart. */
export interface LeaseSettings<Session extends object = object> extends CallSettings {
  readonly release: ReleaseOption<Session>;
}
