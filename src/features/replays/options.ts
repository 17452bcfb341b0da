import type { Replay } from '../../services/browser-service.js';
import { InvalidOptionError } from '../../shared/errors.js';
import {
  checksOf,
  group,
  milliseconds,
  oneOf,
  optional,
  wholeNumber,
  type Checked,
} from '../../shared/options.js';

/** Which recordings of a lease are listed, and whether it is recorded. */
export interface ReplaysOptions {
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
}

/** How to record a lease. */
export interface RecordingOptions {
  /** Frames per second, 1 to 60. Default: the service's. */
  frameRate?: number | undefined;
  /** Maximum duration in ms, rounded up to seconds. Default, also with `Infinity`: the service's. */
  maxDuration?: number | undefined;
}

const recording = checksOf<RecordingOptions>()({
  frameRate: optional(wholeNumber(1, 60)),
  maxDuration: optional(milliseconds()),
});

export const replaysChecks = checksOf<ReplaysOptions>()({
  replays: optional(oneOf('list', 'record', 'off'), 'list'),
  replaysTimeout: optional(milliseconds(), 10_000),
  recording: optional(group(recording)),
});

/** The checked options of the feature. */
export interface ReplaysSettings extends Checked<typeof replaysChecks> {}

export function verifyReplays({ recording, replays }: ReplaysSettings): void {
  if (!recording || replays === 'record') return;
  throw new InvalidOptionError('recording', `recording needs replays: 'record', not '${replays}'.`);
}

/** Its part of the result. */
export interface ReplaysResult {
  /** The recordings of this lease, without those of earlier or later leases of the same browser. */
  replays: readonly Replay[];
  /** Whether the recordings are complete. */
  replayStatus: ReplayStatus;
}

/**
 * Whether the recordings of a lease are complete:
 * - `ready`: all recordings of this lease are finished;
 * - `pending`: at least one is still running or being written;
 * - `none`: nothing was recorded;
 * - `unavailable`: the service did not list the recordings in time, or did not record;
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
  /** The service refused to record, or the recording did not start in time. The run continues. */
  'recording-unavailable': { sessionId: string; error: Error };
  /** The recording was stopped; with `error` if the service did not confirm it. */
  'recording-stopped': { sessionId: string; replay: Replay; error?: Error };
  /** The recordings of this lease were listed; with `replays: 'record'` once more after the wait for their videos. */
  replays: { sessionId: string; replays: readonly Replay[]; status: ReplayStatus; error?: Error };
}
