import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { BrowserSession, Replay } from '../service/wire.js';

/** What a function that starts a recording gets. */
export interface RecordingStart {
  pool: BrowserPool;
  session: BrowserSession;
  /** As the options say. */
  frameRate?: number | undefined;
  maxDuration?: number | undefined;
  /** Aborts when nobody waits for the recording any more. */
  signal: AbortSignal;
}

/** What a function that stops a recording gets. */
export interface RecordingStop {
  pool: BrowserPool;
  session: BrowserSession;
  /** What the start gave. */
  replay: Replay;
  /** Aborts when nobody waits for it any more. */
  signal: AbortSignal;
}

/** How a lease is recorded (beyond the given interface). */
export interface RecordingOptions {
  /** Frames per second, 1 to 60. Default: the service's. */
  frameRate?: number | undefined;
  /** When the recording ends by itself, in ms, rounded up to whole seconds. Default: the service's. */
  maxDuration?: number | undefined;
  /** Starts a recording, at a service with paths of its own. Default: `pool.startReplay`. */
  start?: ((context: RecordingStart) => Replay | Promise<Replay>) | undefined;
  /** Stops it. Default: `pool.stopReplay`. */
  stop?: ((context: RecordingStop) => unknown) | undefined;
}

const MOST_FRAMES = 60;

export function checkRecordingOptions(options: RecordingOptions): void {
  rejectUnknownOptions(options, ['frameRate', 'maxDuration', 'start', 'stop'], 'recording');
  const { frameRate, maxDuration } = options;
  if (frameRate !== undefined && !(Number.isInteger(frameRate) && frameRate > 0 && frameRate <= MOST_FRAMES))
    throw invalid('frameRate', `a whole number of frames per second, 1 to ${MOST_FRAMES}`);
  if (maxDuration !== undefined && !(Number.isFinite(maxDuration) && maxDuration > 0))
    throw invalid('maxDuration', 'a number of milliseconds above 0');
  for (const name of ['start', 'stop'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') throw invalid(name, 'a function');
  }
}

function invalid(option: string, expected: string): InvalidOptionError {
  return new InvalidOptionError(`recording.${option}`, `recording.${option} must be ${expected}.`);
}
