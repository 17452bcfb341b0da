import { randomBytes, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { InvalidOptionError } from '../shared/errors.js';
import { showValue } from '../shared/json.js';
import {
  callback,
  check,
  checked,
  flag,
  group,
  oneOf,
  optional,
  readOption,
  readOptions,
  text,
  wholeNumber,
  withDefault,
  type Option,
  type OptionsInput,
} from '../shared/options.js';
import { pageUrl, leaseName } from '../service/pool-options.js';
import type { TelemetryCategory } from '../service/wire.js';
import { chaosOptions, readChaos } from './chaos/faults.js';
import type { Log } from './events.js';

/** Checks the options of `startLocalPool` and adds the defaults. @throws InvalidOptionError */
export function readLocalPoolOptions(given: LocalPoolOptions) {
  const { token = randomBytes(32).toString('base64url'), ...options } = readOptions(
    localPoolOptions,
    given,
    'startLocalPool',
  );
  const { maxBytes, maxTotalBytes } = options.recording;
  if (maxTotalBytes < maxBytes) {
    const message = `recording.maxTotalBytes (${maxTotalBytes}) must be at least recording.maxBytes (${maxBytes}).`;
    throw new InvalidOptionError('recording.maxTotalBytes', message);
  }
  const chaos = options.chaos && readChaos(options.chaos);
  return { ...options, token, chaos, pools: readPools(options.pools) };
}

/** The options of `startLocalPool` with their defaults. */
export type CheckedOptions = ReturnType<typeof readLocalPoolOptions>;

function readPools(given: readonly LocalPoolSettings[]) {
  const pools = given.map((pool, index) => readPool(pool, `pools[${index}]`));
  const keys = pools.flatMap(({ id, name }) => (id === name ? [id] : [id, name]));
  const duplicate = keys.find((key, index) => keys.indexOf(key) !== index);
  if (duplicate === undefined) return pools;
  throw new InvalidOptionError('pools', `Two pools have the name or id ${duplicate}. Each must be unique.`);
}

function readPool(given: LocalPoolSettings, at: string) {
  const { id = newId(), telemetry, ...settings } = readOption(group(poolOptions), at, given);
  const enabled = telemetry && TELEMETRY_CATEGORIES.filter((category) => telemetry[category]);
  return { ...settings, id, telemetry: enabled };
}

/** The settings of one pool with their defaults. `telemetry` lists the enabled categories. */
export type CheckedSettings = ReturnType<typeof readPool>;

/** An id that needs no escaping in a URL. */
export function newId(): string {
  return randomUUID().replaceAll('-', '');
}

/** A secret for a link to a page: 128 random bits. Hexadecimal, so that no terminal cuts a dash off its end. */
export function newLinkToken(): string {
  return randomBytes(16).toString('hex');
}

const TOKEN = /^[\x21-\x7e]{8,}$/;
const FLAG = /^--[^\0]+$/;
const POOL_FLAG = /^--(remote-debugging-(port|pipe|address)|user-data-dir)(=|$)/;
const MEGABYTE = 1024 * 1024;

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value);
}

function numberAboveZero(): Option<number> {
  return check('a number above 0', (value) => Number.isFinite(value) && (value as number) > 0);
}

function status<const Status extends number>(...allowed: Status[]): Option<Status> {
  return check(`one of ${allowed.join(', ')}`, (value) => allowed.some((one) => one === value));
}

function faultInPools(pools: unknown): string | undefined {
  if (!Array.isArray(pools)) return `must be an array of pools, not ${showValue(pools)}`;
  return pools.length === 0 ? 'must contain at least one pool' : undefined;
}

/** The message does not show the token. */
function faultInToken(token: unknown): string | undefined {
  return matches(token, TOKEN) ? undefined : 'must be a string of at least 8 visible ASCII characters';
}

function faultInArgs(args: unknown): string | undefined {
  if (!Array.isArray(args)) return `must be an array of flags, not ${showValue(args)}`;
  const wrong: unknown = args.find((arg) => !matches(arg, FLAG) || matches(arg, POOL_FLAG));
  if (wrong === undefined) return undefined;
  return matches(wrong, POOL_FLAG)
    ? `must not contain ${showValue(wrong)}: the pool sets this flag`
    : `must contain flags that begin with "--", not ${showValue(wrong)}`;
}

function isFolder(path: unknown): boolean {
  return typeof path === 'string' && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The nine telemetry categories of the API. */
export const TELEMETRY_CATEGORIES = [
  'console',
  'page',
  'interaction',
  'network',
  'control',
  'connection',
  'system',
  'screenshot',
  'captcha',
] as const satisfies readonly TelemetryCategory[];

const telemetryOptions = Object.fromEntries(
  TELEMETRY_CATEGORIES.map((category) => [category, withDefault(flag(), false)]),
) as Record<TelemetryCategory, Option<boolean | undefined, boolean>>;

/** The enabled telemetry categories. @default false for each */
export interface LocalPoolTelemetry extends OptionsInput<typeof telemetryOptions> {}

const viewportOptions = {
  /** Width in pixels. */
  width: wholeNumber(1),
  /** Height in pixels. */
  height: wholeNumber(1),
};

/** Size of the browser's window, in pixels. */
export interface LocalPoolViewport extends OptionsInput<typeof viewportOptions> {}

const poolOptions = {
  /** Name of the pool: 1 to 255 letters, digits, `.`, `_`, `-`. @default 'default' */
  name: withDefault(leaseName(), 'default'),
  /** Id of the pool, with the same characters. @default a random id */
  id: optional(leaseName()),
  /** Number of browsers. @default 1 */
  size: withDefault(wholeNumber(1), 1),
  /** Start browsers when acquire requests need them, up to `size`. @default false: start `size` browsers immediately */
  onDemand: withDefault(flag(), false),
  /** Run the browsers without windows. @default true */
  headless: withDefault(flag(), true),
  /** Seconds without a connection after which a leased browser is destroyed. @default 60 */
  timeoutSeconds: withDefault(numberAboveZero(), 60),
  /**
   * Percent of `size` that the pool replaces per minute. The first fill is not delayed.
   * @default none: a destroyed browser is replaced immediately
   */
  fillRatePerMinute: optional(numberAboveZero()),
  /** URL that each new browser opens. @default about:blank */
  startUrl: optional(pageUrl()),
  /** Size of the window. @default 1920 x 1080; without windows, a size in which pages have 1280 x 720 */
  viewport: optional(group(viewportOptions)),
  /**
   * Telemetry that the sessions report. The timelines of recordings contain the enabled categories.
   * @default none is reported; timelines contain console, page, interaction, network and connection
   */
  telemetry: optional(group(telemetryOptions)),
  /** Record every lease from its start. @default false: clients request each recording */
  recordAll: withDefault(flag(), false),
};

/** One pool. */
export interface LocalPoolSettings extends OptionsInput<typeof poolOptions> {}

const recordingOptions = {
  /**
   * Existing folder in which the videos stay. The name of an unfinished video ends in `.part`.
   * @default a temporary folder, removed when the pool closes
   */
  folder: optional(check<string>('the path of an existing folder', isFolder)),
  /** Bytes of frames after which a recording ends; its video is kept. @default 512 MB */
  maxBytes: withDefault(wholeNumber(1), 512 * MEGABYTE),
  /** Bytes of all recordings, reserved space included. The oldest videos are removed first. @default 2 GB */
  maxTotalBytes: withDefault(wholeNumber(1), 2048 * MEGABYTE),
  /** Number of finished recordings to keep. The oldest are removed first. @default 100 */
  keep: withDefault(wholeNumber(1), 100),
};

/** Limits of recordings, and their folder. Recording is an extension of the API. */
export interface LocalPoolRecording extends OptionsInput<typeof recordingOptions> {}

const quirkOptions = {
  /** Status of an acquire request whose wait elapsed. Only 204 has no body. @default 204 */
  unavailableStatus: withDefault(status(204, 408, 409, 429, 503, 504), 204),
  /** Answer an acquire request immediately when no browser is idle. @default false: wait as requested */
  answersAtOnce: withDefault(flag(), false),
  /** Status of an acquire request whose name an active lease has. @default 409 */
  nameConflictStatus: withDefault(status(409, 422), 409),
  /** A browser keeps its `session_id` in the next lease. @default true */
  keepsSessionId: withDefault(flag(), true),
  /**
   * `new`: a BiDi client sends `session.new` first. `existing`: the session exists when the WebSocket opens, and
   * `session.new` fails with "session not created". @default 'new'
   */
  bidiSession: withDefault(oneOf('new', 'existing'), 'new'),
  /** Headless sessions also have a `browser_live_view_url`. @default false */
  liveViewsHeadless: withDefault(flag(), false),
  /** Headless browsers can be recorded. The public service refuses that. @default true */
  recordsHeadless: withDefault(flag(), true),
};

/** Behaviour that the API does not define. Each switch imitates a service that differs from the default. */
export interface LocalPoolQuirks extends OptionsInput<typeof quirkOptions> {}

const localPoolOptions = {
  /** The pools. @default one pool named `default` */
  pools: withDefault(checked<readonly LocalPoolSettings[]>(faultInPools), [{}]),
  /** TCP port on 127.0.0.1. @default 0: any free port */
  port: withDefault(wholeNumber(0, 65_535), 0),
  /** Access token that clients must send: at least 8 visible ASCII characters. @default a random token */
  token: optional(checked<string>(faultInToken)),
  /** Path of a Chrome or Chromium. @default the result of `findBrowser` */
  executablePath: optional(text()),
  /** Additional Chromium flags. The pool sets the user data folder and the remote debugging flags. @default [] */
  args: withDefault(checked<readonly string[]>(faultInArgs), []),
  /** Behaviour on which services differ, to test a client against each. */
  quirks: withDefault(group(quirkOptions), {}),
  /** Limits of recordings, and their folder. */
  recording: withDefault(group(recordingOptions), {}),
  /** Faults to cause, to prove that a client survives them. @default none */
  chaos: optional(group(chaosOptions)),
  /** Receives each event. Events contain no token. An error that this function throws is ignored. */
  onLog: optional(callback<Log>()),
};

/** Options of `startLocalPool`. */
export interface LocalPoolOptions extends OptionsInput<typeof localPoolOptions> {}
