import type { Replay } from '../../services/browser-service.js';
import { InvalidOptionError } from '../../shared/errors.js';
import {
  check,
  checksOf,
  flag,
  group,
  milliseconds,
  oneOf,
  optional,
  readOptions,
  text,
  wholeNumber,
  type Checked,
} from '../../shared/options.js';

/** Which recordings of a lease are listed, and whether it is recorded. */
export interface ReplaysOptions {
  /**
   * `'list'`: list the recordings of this lease; `'record'`: record it, and wait for the video; `'off'`: neither. If
   * nothing can record, an event `recording-unavailable` is emitted and the run does not fail.
   * @default 'list'
   */
  replays?: 'list' | 'record' | 'off' | undefined;
  /**
   * Time to stop and list the recordings, and to wait for the video, in ms.
   * @default 10_000
   */
  replaysTimeout?: number | undefined;
  /** How to record, with `replays: 'record'`. */
  recording?: RecordingOptions | undefined;
}

/** How to record a lease. */
export interface RecordingOptions {
  /** Frames per second, 1 to 60. Default: the service's, and 10 if this process records. */
  frameRate?: number | undefined;
  /** Maximum duration in ms, rounded up to seconds. Default, also with `Infinity`: the service's, and none if this process records. */
  maxDuration?: number | undefined;
  /**
   * Who records: the service, or this process into a folder. `'auto'`: the service if it can and does not refuse; with
   * `baseUrl: 'local'` and otherwise this process, which adds calls, tests and failures.
   * @default 'auto'
   */
  by?: 'service' | 'client' | 'auto' | undefined;
  /**
   * Folder of the recordings of this process. Each has a folder of its own. Default:
   * `BROWSER_POOL_LOCAL_RECORDINGS`, or `pooled-browser-recordings`.
   */
  folder?: string | undefined;
  /**
   * `'failures'`: removes the recording of a lease in which nothing failed. This process then records, and a recording that the service
   * makes by itself stays there. With `by: 'service'`, the service records, and its recording is deleted if its API can (Anchor);
   * otherwise it stays.
   * @default 'all'
   */
  keepOnly?: 'all' | 'failures' | undefined;
  /**
   * Whether a replay is one HTML file, without a video beside it. This process then records.
   * @default false
   */
  single?: boolean | undefined;
  /**
   * CSS selectors of elements that are masked, as password fields always are. They are left out of the timeline, too. This process
   * then records; a recording that the service makes anyway is reported in `cleanupErrors`.
   */
  hide?: readonly string[] | undefined;
  /** How long the recordings of the folder stay. */
  keep?: KeepOptions | undefined;
}

/** Most selectors, and characters of one: each picture needs all of them. */
const MOST_SELECTORS = 100;
const LONGEST_SELECTOR = 1_000;

function selectors() {
  const expected = `a list of up to ${MOST_SELECTORS} CSS selectors`;
  return check<readonly string[]>(expected, (value) => {
    const isSelector = (one: unknown) =>
      typeof one === 'string' && one.trim() !== '' && one.length <= LONGEST_SELECTOR;
    return Array.isArray(value) && value.length <= MOST_SELECTORS && value.every(isSelector);
  });
}

/** How long the recordings of a folder stay. One that is being written always stays. */
export interface KeepOptions {
  /**
   * Days after which a recording is removed.
   * @default 30
   */
  days?: number | undefined;
  /**
   * Bytes of all recordings of the folder. Above that, the oldest are removed.
   * @default 5_000_000_000
   */
  bytes?: number | undefined;
}

const keep = checksOf<KeepOptions>()({
  days: optional(wholeNumber(1), 30),
  bytes: optional(wholeNumber(1), 5_000_000_000),
});

const recording = checksOf<RecordingOptions>()({
  frameRate: optional(wholeNumber(1, 60)),
  maxDuration: optional(milliseconds()),
  by: optional(oneOf('service', 'client', 'auto'), 'auto'),
  folder: optional(text()),
  keepOnly: optional(oneOf('all', 'failures'), 'all'),
  single: optional(flag(), false),
  hide: optional(selectors()),
  keep: optional(group(keep), {}),
});

export const replaysChecks = checksOf<ReplaysOptions>()({
  replays: optional(oneOf('list', 'record', 'off'), 'list'),
  replaysTimeout: optional(milliseconds(), 10_000),
  recording: optional(group(recording)),
});

/** The checked options of the feature. */
export interface ReplaysSettings extends Checked<typeof replaysChecks> {}

export function verifyReplays({ recording, replays }: ReplaysSettings): void {
  if (!recording) return;
  if (replays !== 'record')
    throw new InvalidOptionError('recording', `recording needs replays: 'record', not '${replays}'.`);
  const { by, single, hide } = recording;
  const option = [single && 'single', hide && 'hide'].find(Boolean);
  if (by !== 'service' || option === undefined) return;
  const message = `recording.${String(option)} needs a recording by this process. Remove recording.by, or set it to 'client'.`;
  throw new InvalidOptionError(`recording.${String(option)}`, message);
}

/** How to record, with all defaults. */
export interface RecordingSettings extends Checked<typeof recording> {}

export function recordingOf({ recording: given }: ReplaysSettings): RecordingSettings {
  return given ?? readOptions(recording, {}, 'recording');
}

/** Whether this process records, whatever the service can. Only this process knows calls, tests and failures. */
export function isByClient(
  { by, keepOnly, single, hide }: RecordingSettings,
  service?: { readonly local: object | undefined },
): boolean {
  const isChosen = single || hide !== undefined || keepOnly === 'failures' || service?.local !== undefined;
  return by === 'client' || (by === 'auto' && isChosen);
}

/** Its part of the result. */
export interface ReplaysResult {
  /** The recordings of this lease, not those of other leases of the browser. */
  replays: readonly Replay[];
  /** Whether the recordings are complete. */
  replayStatus: ReplayStatus;
  /** Link to the moment of the failure in a recording of this process. Missing if nothing failed. */
  moment?: string;
}

/**
 * Whether the recordings of a lease are complete:
 * - `ready`: all recordings of this lease are finished;
 * - `pending`: at least one is still running or being written;
 * - `none`: nothing was recorded;
 * - `unavailable`: the service did not list the recordings in time, or nothing could record;
 * - `off`: not requested.
 */
export type ReplayStatus = 'ready' | 'pending' | 'none' | 'unavailable' | 'off';

/** Its stage. */
export interface ReplaysTimes {
  /** To stop the recording, to list the recordings, and to wait for the video. */
  readonly replays?: number;
}

/** Its events. */
export interface ReplaysSteps {
  /** The recording has started. */
  'recording-started': { sessionId: string; replay: Replay };
  /** Nothing records this lease. The recording was refused, did not start in time, or can't be written. The run continues. */
  'recording-unavailable': { sessionId: string; error: Error };
  /** The recording was stopped; with `error` if the service did not confirm it. */
  'recording-stopped': { sessionId: string; replay: Replay; error?: Error };
  /** The recordings of this lease were listed. With `replays: 'record'`, they are listed once more after the wait for their videos. */
  replays: { sessionId: string; replays: readonly Replay[]; status: ReplayStatus; error?: Error };
}
