import { complete } from './complete.js';
import type { RecordedSession } from './page/replay-page.js';
import { RecordingStore, type RecordingLimits } from './recording-store.js';
import { Recording, type RecordableBrowser, type RecordingHost, type RecordingPlan } from './recording.js';
import type { RecordingEnd } from './recording-end.js';
import { VideoWriter, type EncodingBrowser } from './video-writer.js';

/** What writes the videos. */
export interface RecordingEncoder extends Pick<RecordingHost, 'complete' | 'expect'> {
  readonly close: () => Promise<void>;
}

/** Writes the videos in this process, with a Chromium that `launch` starts. */
export function encodeHere(launch: (signal: AbortSignal) => Promise<EncodingBrowser>): RecordingEncoder {
  const writer = new VideoWriter(launch);
  return {
    complete: (ended, encoder = writer) => complete(ended, encoder),
    expect: () => writer.expect(),
    close: () => writer.close(),
  };
}

interface RecorderOptions {
  readonly limits: RecordingLimits;
  readonly encoder: RecordingEncoder;
  readonly onStarted?: (recording: Recording) => void;
  readonly onFinished?: (recording: Recording, reason: RecordingEnd) => void;
}

interface RecordOptions {
  /** Ends the recording. */
  readonly signal: AbortSignal;
  /** Called when the recording has its files, before the first picture. */
  readonly onStarted?: (recording: Recording) => void;
}

/** Records browsers over their own CDP connections. The recordings stay available after their sessions end. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #store: RecordingStore<Recording>;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#store = new RecordingStore(options.limits);
  }

  /** All recordings, the oldest first. */
  get list(): readonly Recording[] {
    return this.#store.list;
  }

  /**
   * Starts a recording. Resolves after its first picture, or after 5 s without one.
   *
   * @throws if the files cannot be written (an error of the file system), or if the browser does not answer.
   */
  async record(
    browser: RecordableBrowser,
    session: RecordedSession,
    plan: RecordingPlan,
    { signal, onStarted }: RecordOptions,
  ): Promise<Recording> {
    const onFinished = (recording: Recording, reason: RecordingEnd) => {
      this.#options.onFinished?.(recording, reason);
      this.#store.prune();
    };
    const recording = new Recording(session, plan, {
      ...this.#options.encoder,
      store: this.#store,
      onFinished,
    });
    this.#store.add(recording);
    recording.stopWith(signal);
    this.#options.onStarted?.(recording);
    onStarted?.(recording);
    try {
      await recording.start(browser);
      return recording;
    } catch (error) {
      await recording.stop('browser-gone');
      this.#store.remove(recording);
      throw error;
    }
  }

  remove(recording: Recording): void {
    this.#store.remove(recording);
  }

  /** Keeps the files of a recording that is over, and nothing in memory. */
  forget(recording: Recording): void {
    this.#store.forget(recording);
  }

  /** Ends all recordings. Writes the last videos only if the option `folder` keeps them. */
  async close(): Promise<void> {
    const finished = Promise.all(this.list.map((recording) => recording.stop('lease-ended')));
    if (this.#options.limits.folder !== undefined) await finished;
    await this.#options.encoder.close();
    await finished;
    await this.#store.close();
  }
}
