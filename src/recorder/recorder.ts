import type { RecordedSession } from './page/replay-page.js';
import type { PicturedBrowser } from './pictures.js';
import { RecordingStore, type RecordingLimits } from './recording-store.js';
import { Recording, type RecordingPlan } from './recording.js';
import type { RecordingEnd } from './recording-end.js';
import { VideoWriter, type EncodingBrowser } from './video-writer.js';

interface RecorderOptions {
  readonly limits: RecordingLimits;
  /** Starts the Chromium that encodes the videos. */
  readonly launch: (signal: AbortSignal) => Promise<EncodingBrowser>;
  readonly onStarted?: (recording: Recording) => void;
  readonly onFinished?: (recording: Recording, reason: RecordingEnd) => void;
}

/** Records browsers over their own CDP connections. The recordings stay available after their sessions end. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #store: RecordingStore<Recording>;
  readonly #writer: VideoWriter;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#store = new RecordingStore(options.limits);
    this.#writer = new VideoWriter(options.launch);
  }

  /** All recordings, the oldest first. */
  get list(): readonly Recording[] {
    return this.#store.list;
  }

  /**
   * Starts a recording. Resolves after its first picture, or after 5 s without one.
   *
   * @param signal Ends the recording.
   * @throws if the files cannot be written (an error of the file system), or if the browser does not answer.
   */
  async record(
    browser: PicturedBrowser,
    session: RecordedSession,
    plan: RecordingPlan,
    signal: AbortSignal,
  ): Promise<Recording> {
    const onFinished = (recording: Recording, reason: RecordingEnd) => {
      this.#options.onFinished?.(recording, reason);
      this.#store.prune();
    };
    const recording = new Recording(session, plan, { store: this.#store, writer: this.#writer, onFinished });
    this.#store.add(recording);
    recording.stopWith(signal);
    this.#options.onStarted?.(recording);
    try {
      await recording.start(browser);
      return recording;
    } catch (error) {
      await recording.stop('browser-gone');
      this.#store.remove(recording);
      throw error;
    }
  }

  /** Ends all recordings. Writes the last videos only if the option `folder` keeps them. */
  async close(): Promise<void> {
    const finished = Promise.all(this.list.map((recording) => recording.stop('lease-ended')));
    if (this.#options.limits.folder !== undefined) await finished;
    await this.#writer.close();
    await finished;
    await this.#store.close();
  }
}
