import type { Connector, ContextChoice, Protocol } from '../connect/connector.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord } from '../shared/json.js';
import {
  abortSignal,
  anyOf,
  callback,
  check,
  flag,
  group,
  milliseconds,
  off,
  oneOf,
  optional,
  readOptions,
  text,
  wholeNumber,
  withDefault,
  type Options,
  type OptionsInput,
  type OptionsOutput,
} from '../shared/options.js';
import { acquireSet } from './acquire-options.js';
import type { RunEvent } from './events.js';
import type { LeaseOutcome, ReleaseChoice } from './run.js';

const recording = {
  /** Frames per second, 1 to 60. Default: the service's. */
  frameRate: optional(wholeNumber(1, 60)),
  /** Maximum duration in ms, rounded up to seconds. Default: the service's. */
  maxDuration: optional(milliseconds()),
};

const artifacts = {
  /**
   * Folder for the files, created if it does not exist. Each run or attempt has its own folder there. Nothing is deleted,
   * and other users of the machine can't read the files.
   */
  folder: text(),
  /** `'failure'`: only of failed runs, tasks or tests; `'always'`: of all. Default: `'failure'`. */
  on: withDefault(oneOf('failure', 'always'), 'failure'),
  /** A screenshot of each open page, in full length. Default: `true`. */
  screenshot: withDefault(flag(), true),
  /**
   * A trace of Playwright, for its trace viewer: of the context that the callback receives. It contains everything that
   * the pages sent and received, with cookies and passwords. Playwright only. Default: `false`.
   */
  trace: withDefault(flag(), false),
  /** The latest 1,000 console messages, page errors and failed requests, as JSON lines. Default: `true`. */
  console: withDefault(flag(), true),
};

/** The option `artifacts`, for the option sets that have it. */
export const artifactsOption = {
  /**
   * Files that show what happened in the browser, collected before it is cleaned up, within 10 s. Their paths are in
   * `artifacts` of the run or outcome. Needs a connector with `observe`. Default: none.
   */
  artifacts: optional(group(artifacts)),
};

/** Options of every lease. */
const leaseSet = {
  /**
   * `'auto'`: reuse the browser if it is healthy and cleaned up, otherwise destroy it; a choice; or a function that
   * returns one. Default: `'auto'`.
   */
  release: withDefault(
    anyOf(
      "one of 'auto', 'reuse', 'destroy', 'leave', or a function",
      oneOf('auto', 'reuse', 'destroy', 'leave'),
      callback<(outcome: LeaseOutcome) => ReleaseChoice>(),
    ),
    'auto',
  ),
  /** Time to release the browser, in ms. An abort does not shorten it. Default: 10,000. */
  releaseTimeout: withDefault(milliseconds(), 10_000),
  /**
   * Starts a small guard process that releases the browser if this process is killed (SIGKILL, out of memory). At any
   * other end of the process, the browser is released without the guard. Default: `false`.
   */
  releaseOnCrash: withDefault(flag(), false),
  /**
   * `'list'`: list the recordings of this lease; `'off'`: do not; `'record'` (extension): record the lease, and wait for
   * the video after the release. If the service can't record, an event `recording-unavailable` is emitted and the run
   * does not fail. Default: `'list'`.
   */
  replays: withDefault(oneOf('list', 'record', 'off'), 'list'),
  /** Time to stop the recording, to list the recordings, and to wait for the video, in ms. Default: 10,000. */
  replaysTimeout: withDefault(milliseconds(), 10_000),
  /** How to record, with `replays: 'record'`: {@link RecordingOptions}. */
  recording: optional(group(recording)),
  /** Aborts the call at any point; the promise rejects with the signal's reason. */
  signal: optional(abortSignal()),
  /** Called with every event of the call: {@link RunEvent}. */
  onEvent: optional(callback<(event: RunEvent) => void>()),
};

/** Options of every connection. */
const connectSet = {
  /** Time to connect until a page is usable, in ms. Default: 30,000. */
  connectTimeout: withDefault(milliseconds(), 30_000),
  /** `'cdp'`, or with Puppeteer `'bidi'`. Default: `'cdp'`. */
  protocol: withDefault(oneOf('cdp', 'bidi'), 'cdp'),
  /** `'default'`: the browser's own context, with its profile; `'new'`: a fresh one. Default: `'default'`. */
  context: withDefault(oneOf('default', 'new'), 'default'),
  /** The automation library's own connect options. */
  connectOptions: withDefault(check<object>('an object', isRecord), {}),
};

/** Options of a lease that this process acquires and connects to. */
export const leaseOptions = {
  ...acquireSet,
  /**
   * Maximum number of browsers to lease for one call: a browser that can't be reached is released for destruction, and
   * another one leased. Default: 2.
   */
  connectAttempts: withDefault(wholeNumber(1), 2),
  ...connectSet,
  ...leaseSet,
};

/** Options of `withPooledBrowser`. */
export const runOptions = {
  ...leaseOptions,
  ...artifactsOption,
  /** Time for the callback, in ms. Default: no limit. */
  timeout: withDefault(milliseconds(), Number.POSITIVE_INFINITY),
  /**
   * `false`: resolve as soon as the release request is on its way; `released` is then `'pending'`, and an event reports
   * the result. `pool.close()` and the end of the process wait for it. Default: `true`.
   */
  awaitRelease: withDefault(flag(), true),
};

const reconnectSet = {
  /**
   * Replaces a lost connection while the session lasts: `'eager'` immediately, `'lazy'` when the browser is next used.
   * No call is repeated. Default: `false`, the browser is lost with its connection.
   */
  reconnect: withDefault(anyOf("'eager', 'lazy' or false", oneOf('eager', 'lazy'), off()), false),
};

/** Options of `leaseBrowser`. */
export const heldLeaseOptions = { ...leaseOptions, ...reconnectSet };

/** Options of `attachBrowser`, which acquires nothing. */
export const attachOptions = { ...connectSet, ...leaseSet, ...reconnectSet };

/** Options of a lease without a connection. */
export const sessionLeaseOptions = { ...acquireSet, ...leaseSet };

const ALL = { ...runOptions, ...reconnectSet };
const DEFAULTS = readOptions(ALL, {}, 'a lease');

/** The arguments of the error for a library without traces. */
export const NO_TRACE = [
  'artifacts.trace',
  'Only Playwright records traces: remove artifacts.trace.',
] as const;

/** All options with their defaults. */
export type LeaseSettings = OptionsOutput<typeof ALL>;

/** The options with the types of one automation library. */
type ForLibrary<Input, ConnectOptions, P, Context = ContextChoice> = {
  [Name in keyof Input]: Name extends 'connectOptions'
    ? ConnectOptions | undefined
    : Name extends 'protocol'
      ? P | undefined
      : Name extends 'context'
        ? Context | undefined
        : Input[Name];
};

/** Options of a lease that are common to all functions. @interface */
export type LeaseOptions<C extends object = object, P = Protocol> = ForLibrary<
  OptionsInput<typeof leaseOptions>,
  C,
  P
>;
/** Options of `withPooledBrowser`. @interface */
export type RunOptions<C extends object = object, P = Protocol, Context = ContextChoice> = ForLibrary<
  OptionsInput<typeof runOptions>,
  C,
  P,
  Context
>;
/** Options of `leaseBrowser`. @interface */
export type HeldLeaseOptions<C extends object = object, P = Protocol, Context = ContextChoice> = ForLibrary<
  OptionsInput<typeof heldLeaseOptions>,
  C,
  P,
  Context
>;
/** Options of `attachBrowser`. @interface */
export type AttachOptions<C extends object = object, P = Protocol, Context = ContextChoice> = ForLibrary<
  OptionsInput<typeof attachOptions>,
  C,
  P,
  Context
> & {
  /** The pool of the lease. Default: the pool of that id or name at the service of the environment. */
  pool?: BrowserPool | string | undefined;
};
export interface SessionLeaseOptions extends OptionsInput<typeof sessionLeaseOptions> {}
/** How to record a lease (extension). */
export interface RecordingOptions extends OptionsInput<typeof recording> {}

/** Which files show what happened in the browser. */
export interface ArtifactsOptions extends OptionsInput<typeof artifacts> {}
/** The checked option `artifacts`. */
export type ArtifactsSettings = OptionsOutput<typeof artifacts>;

/**
 * Checks the options of a call and fills in all defaults.
 *
 * @param set The options that the caller takes.
 */
export function readLeaseOptions(
  set: Options,
  given: object,
  { caller, connector }: { caller: string; connector?: Pick<Connector, 'refusal' | 'canTrace'> },
): LeaseSettings {
  const settings = { ...DEFAULTS, ...readOptions(set, given, caller) } as LeaseSettings;
  const { recording, replays } = settings;
  if (recording && replays !== 'record') {
    throw new InvalidOptionError('recording', `recording needs replays: 'record', not '${replays}'.`);
  }
  if (settings.artifacts?.trace && !connector?.canTrace) throw new InvalidOptionError(...NO_TRACE);
  const refusal = connector?.refusal(settings.protocol);
  if (refusal !== undefined) throw new InvalidOptionError('protocol', refusal);
  return settings;
}
