import { statSync } from 'node:fs';
import { InvalidOptionError } from '../shared/errors.js';
import {
  check,
  checksOf,
  flag,
  group,
  oneOf,
  optional,
  readOption,
  wholeNumber,
  type Check,
  type Checked,
} from '../shared/options.js';
import { leaseName, pageUrl } from '../pool/pool-options.js';
import type { TelemetryCategory } from '../services/kernel-api.js';
import { newId } from '../shared/ids.js';

/** The enabled telemetry categories. A missing category is off. */
export type LocalPoolTelemetry = Partial<Record<TelemetryCategory, boolean | undefined>>;

/** Size of the browser's window, in pixels. */
export interface LocalPoolViewport {
  /** Width in pixels. */
  width: number;
  /** Height in pixels. */
  height: number;
}

/** One pool. */
export interface LocalPoolSettings {
  /**
   * Name of the pool: 1 to 255 letters, digits, `.`, `_`, `-`.
   * @default 'default'
   */
  name?: string | undefined;
  /** Id of the pool, with the same characters. Default: a random id. */
  id?: string | undefined;
  /**
   * Number of browsers.
   * @default 1
   */
  size?: number | undefined;
  /**
   * Start browsers when acquire requests need them, up to `size`. `false`: start `size` browsers immediately.
   * @default false
   */
  onDemand?: boolean | undefined;
  /**
   * Leases after which a browser that is released for reuse is replaced. A browser that holds too much memory is replaced earlier.
   * @default 100
   */
  maxLeases?: number | undefined;
  /**
   * Run the browsers without windows.
   * @default true
   */
  headless?: boolean | undefined;
  /**
   * Seconds without a connection after which a leased browser is destroyed.
   * @default 60
   */
  timeoutSeconds?: number | undefined;
  /**
   * Percent of `size` that the pool replaces per minute. The first fill is not delayed. Default: none. A destroyed browser
   * is replaced immediately.
   */
  fillRatePerMinute?: number | undefined;
  /**
   * URL that each new browser opens.
   * @default 'about:blank'
   */
  startUrl?: string | undefined;
  /** Size of the window. Default: 1920 x 1080. Without windows, it is a size in which pages have 1280 x 720. */
  viewport?: LocalPoolViewport | undefined;
  /**
   * Telemetry that the sessions report. The timelines of recordings contain the enabled categories. Default: none.
   * Timelines contain console, page, interaction, network and connection.
   */
  telemetry?: LocalPoolTelemetry | undefined;
  /**
   * Record every lease from its start. `false`: clients request each recording.
   * @default false
   */
  recordAll?: boolean | undefined;
}

/** Limits of recordings, and their folder. */
export interface LocalPoolRecording {
  /**
   * Folder in which the recordings stay, created for the first recording: each in its own folder, with its video and a page
   * that shows the video and its timeline. `replay_view_url` is the `file:` URL of the page. Default: a temporary folder,
   * removed when the pool closes; the local pool then serves the page.
   */
  folder?: string | undefined;
  /**
   * Bytes of frames after which a recording ends; its video is kept.
   * @default 512 * 1024 * 1024
   */
  maxBytes?: number | undefined;
  /**
   * Bytes of all recordings, reserved space included, and those of earlier processes in `folder`. The oldest are removed
   * first.
   * @default 2048 * 1024 * 1024
   */
  maxTotalBytes?: number | undefined;
  /**
   * Number of finished recordings to keep, and those of earlier processes in `folder`. The oldest are removed first.
   * @default 1000
   */
  keep?: number | undefined;
}

/** Behaviour on which services differ. Each switch imitates a service that differs from the default. */
export interface LocalPoolQuirks {
  /**
   * Status of an acquire request whose wait elapsed. Only 204 has no body.
   * @default 204
   */
  unavailableStatus?: 204 | 408 | 409 | 429 | 503 | 504 | undefined;
  /**
   * Answer an acquire request immediately when no browser is idle. `false`: wait as requested.
   * @default false
   */
  answersAtOnce?: boolean | undefined;
  /**
   * Status of an acquire request whose name an active lease has.
   * @default 409
   */
  nameConflictStatus?: 409 | 422 | undefined;
  /**
   * A browser keeps its `session_id` in the next lease.
   * @default true
   */
  keepsSessionId?: boolean | undefined;
  /**
   * `new`: a BiDi client sends `session.new` first. `existing`: the session exists when the WebSocket opens, and `session.new`
   * fails with "session not created".
   * @default 'new'
   */
  bidiSession?: 'new' | 'existing' | undefined;
  /**
   * Headless sessions also have a `browser_live_view_url`.
   * @default false
   */
  liveViewsHeadless?: boolean | undefined;
  /**
   * Headless browsers can be recorded. The public service refuses that.
   * @default true
   */
  recordsHeadless?: boolean | undefined;
}

/** Checks the pools and adds the defaults. @throws InvalidOptionError */
export function readPools(given: readonly LocalPoolSettings[]) {
  const pools = given.map((pool, index) => readPool(pool, `pools[${index}]`));
  const keys = pools.flatMap(({ id, name }) => (id === name ? [id] : [id, name]));
  const duplicate = keys.find((key, index) => keys.indexOf(key) !== index);
  if (duplicate === undefined) return pools;
  throw new InvalidOptionError('pools', `Two pools have the name or id ${duplicate}. Each must be unique.`);
}

function readPool(given: LocalPoolSettings, at: string) {
  const { id = newId(), telemetry, ...settings } = readOption(group(poolChecks), at, given);
  const enabled = telemetry && TELEMETRY_CATEGORIES.filter((category) => telemetry[category]);
  return { ...settings, id, telemetry: enabled };
}

/** The settings of one pool with their defaults. `telemetry` lists the enabled categories. */
export type CheckedSettings = ReturnType<typeof readPool>;

const MEGABYTE = 1024 * 1024;

function numberAboveZero(): Check<number> {
  return check('a number above 0', (value) => Number.isFinite(value) && (value as number) > 0);
}

function status<const Status extends number>(...allowed: Status[]): Check<Status> {
  return check(`one of ${allowed.join(', ')}`, (value) => allowed.some((one) => one === value));
}

/** The folder need not exist. */
function isFolderPath(path: unknown): boolean {
  if (typeof path !== 'string' || path === '') return false;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() !== false;
}

const category = optional(flag(), false);

const telemetryChecks = checksOf<LocalPoolTelemetry>()({
  console: category,
  page: category,
  interaction: category,
  network: category,
  control: category,
  connection: category,
  system: category,
  screenshot: category,
  captcha: category,
});

export const TELEMETRY_CATEGORIES = Object.keys(telemetryChecks) as readonly TelemetryCategory[];

const viewportChecks = checksOf<LocalPoolViewport>()({ width: wholeNumber(1), height: wholeNumber(1) });

const poolChecks = checksOf<LocalPoolSettings>()({
  name: optional(leaseName(), 'default'),
  id: optional(leaseName()),
  size: optional(wholeNumber(1), 1),
  onDemand: optional(flag(), false),
  maxLeases: optional(wholeNumber(1), 100),
  headless: optional(flag(), true),
  timeoutSeconds: optional(numberAboveZero(), 60),
  fillRatePerMinute: optional(numberAboveZero()),
  startUrl: optional(pageUrl()),
  viewport: optional(group(viewportChecks)),
  telemetry: optional(group(telemetryChecks)),
  recordAll: optional(flag(), false),
});

export const recordingChecks = checksOf<LocalPoolRecording>()({
  folder: optional(check<string>('the path of a folder', isFolderPath)),
  maxBytes: optional(wholeNumber(1), 512 * MEGABYTE),
  maxTotalBytes: optional(wholeNumber(1), 2048 * MEGABYTE),
  keep: optional(wholeNumber(1), 1000),
});

export const quirkChecks = checksOf<LocalPoolQuirks>()({
  unavailableStatus: optional(status(204, 408, 409, 429, 503, 504), 204),
  answersAtOnce: optional(flag(), false),
  nameConflictStatus: optional(status(409, 422), 409),
  keepsSessionId: optional(flag(), true),
  bidiSession: optional(oneOf('new', 'existing'), 'new'),
  liveViewsHeadless: optional(flag(), false),
  recordsHeadless: optional(flag(), true),
});

/** The quirks with their defaults. */
export type Quirks = Checked<typeof quirkChecks>;
