import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { clock, startTimer } from '../../shared/clock.js';
import type { TelemetryCategory } from '../../services/kernel-api.js';
import type { Chromium } from '../browser/chromium.js';
import type { RecordingEnd } from '../events.js';
import { newId, newLinkToken } from '../options.js';
import { saveReplayPage } from '../pages/replay-file.js';
import type { Lease } from '../pool/lease.js';
import { FrameFile, FrameSampler, type Frame } from './frames.js';
import { PageEvents } from './page-events.js';
import { RecordedPages } from './recorded-pages.js';
import type { RecordingFiles, RecordingStore } from './recording-store.js';
import { Timeline, type TimelineEntry } from './timeline.js';
import { isDiskFull, maxVideoSize, VideoFile, type Video } from './video-file.js';
import type { VideoWriter } from './video-writer.js';

/** `writing`: the recording ended, and its video is not complete. `none`: there is no video. */
export type RecordingState = 'recording' | 'writing' | 'ready' | 'none';

/** The checked body of a request that starts a recording. */
export interface RecordingRequest {
  /** Frames per second. */
  readonly framerate: number;
  /** Seconds after which the recording ends. Default: none. */
  readonly max_duration_in_seconds?: number | undefined;
}

/** The plan of a recording. */
export interface RecordingPlan {
  readonly pool: string;
  readonly telemetry: readonly TelemetryCategory[] | undefined;
  readonly request: RecordingRequest;
}

/** The parts that recordings share. */
interface RecordingHost {
  readonly store: RecordingStore;
  readonly writer: VideoWriter;
  readonly onFinished: (recording: Recording, reason: RecordingEnd) => void;
}

const REASONS: Readonly<Record<RecordingEnd, string>> = {
  stopped: 'It was stopped.',
  'max-duration': 'The maximum duration was reached.',
  'lease-ended': 'The lease ended.',
  'browser-gone': 'The browser ended.',
  'disk-limit': 'The size limit of recordings was reached.',
  'disk-full': 'The disk is full.',
  'disk-failed': 'The disk cannot be written.',
};

/** Milliseconds to wait for the first frame. A browser without pages sends none. */
const FIRST_FRAME_TIMEOUT = 5_000;

/** Milliseconds to wait for the last screenshot. */
const SCREENSHOT_TIMEOUT = 1_000;

/** One recording: collects frames until it ends, and then writes the video. */
export class Recording {
  readonly replayId = newId();
  /** The secret of the link to the replay page. */
  readonly linkToken = newLinkToken();
  readonly sessionId: string;
  /** The session can have several leases, one after another. */
  readonly leaseId: string;
  /** Name of the pool. */
  readonly pool: string;
  readonly leaseName: string | undefined;
  readonly tags: Lease['request']['tags'];
  readonly startedAt = new Date();
  readonly files: RecordingFiles;
  /** When the recording ended. Missing until its video is written, or has failed. */
  finishedAt?: Date;
  /** Missing until the video is written, and for a recording without frames. */
  video?: Video;
  /** Why the video or the page could not be written. */
  failure?: string;
  readonly #request: RecordingRequest;
  readonly #host: RecordingHost;
  readonly #timeline: Timeline;
  readonly #sampler: FrameSampler;
  readonly #video: VideoFile;
  readonly #frames: FrameFile;
  readonly #ending = new AbortController();
  readonly #started = performance.now();
  /** The frame with the most bytes, which shows the most, until it is on the disk. */
  #poster: Buffer | undefined;
  #pages: RecordedPages | undefined;
  #length: number | undefined;
  #onWritten = (): void => {};
  #finished: Promise<void> | undefined;

  /** @throws if the disk has no space for a video. */
  constructor(lease: Lease, { pool, telemetry, request }: RecordingPlan, host: RecordingHost) {
    this.sessionId = lease.sessionId;
    this.leaseId = lease.id;
    this.pool = pool;
    this.leaseName = lease.request.name;
    this.tags = lease.request.tags;
    this.#request = request;
    this.#host = host;
    this.#timeline = new Timeline(telemetry, () => this.length);
    this.#sampler = new FrameSampler(1000 / request.framerate, (frame) => this.#save(frame));
    const onFailure = (error: Error) => void this.stop(isDiskFull(error) ? 'disk-full' : 'disk-failed');
    this.files = host.store.createFiles(this);
    try {
      this.#video = new VideoFile(this.files.video, onFailure);
    } catch (error) {
      host.store.remove(this);
      throw error;
    }
    this.#frames = new FrameFile(this.files.frames, onFailure);
    this.#stopWith(lease.signal);
  }

  get state(): RecordingState {
    if (this.video) return 'ready';
    if (this.finishedAt) return 'none';
    return this.ended ? 'writing' : 'recording';
  }

  /** The events in the order of time. */
  get timeline(): readonly TimelineEntry[] {
    return this.#timeline.entries;
  }

  /** In milliseconds. Grows until the recording ends. */
  get length(): number {
    return this.#length ?? performance.now() - this.#started;
  }

  get ended(): boolean {
    return this.#length !== undefined;
  }

  /** Bytes of the frames so far. */
  get frameBytes(): number {
    return this.#frames.bytes;
  }

  /** Bytes on the disk. */
  get bytes(): number {
    return this.finishedAt ? (this.video?.size ?? 0) : this.frameBytes + this.#video.reserved;
  }

  /** Reads the picture for the time before the video plays. Its first frame is often an empty page. */
  async readPoster(): Promise<Buffer | undefined> {
    return this.#poster ?? (await readFile(this.files.poster).catch(() => undefined));
  }

  /** Starts to collect frames. Resolves after the first frame, so that also a very short recording has a video. */
  async start(browser: Chromium): Promise<void> {
    const events = new PageEvents(this.#timeline);
    let onFirst!: () => void;
    const first = new Promise<void>((resolve) => (onFirst = resolve));
    const pages = await RecordedPages.open(browser, {
      interval: 1000 / this.#request.framerate,
      onFrame: (jpeg) => {
        this.#sampler.add({ at: this.length, jpeg });
        onFirst();
      },
      onPage: (page) => events.enable(page),
      onEvent: (event) => events.add(event),
    });
    if (this.ended) return pages.close();
    this.#pages = pages;
    this.#ending.signal.addEventListener('abort', () => pages.close());
    void pages.closed.then(() => this.stop('browser-gone'));
    await Promise.race([first, pages.closed, sleep(FIRST_FRAME_TIMEOUT, undefined, { ref: false })]);
    // After the first frame: the start of the encoder must not delay the start of the recording.
    if (!this.ended) this.#onWritten = this.#host.writer.expect();
  }

  /** Adds an event of the client's connection to the timeline. */
  note(kind: 'connected' | 'disconnected', protocol: string): void {
    if (!this.ended) this.#timeline.add(kind, protocol);
  }

  /**
   * Ends the recording with a screenshot, because the last change of a page may have no frame yet. Resolves when the
   * browser is no longer in use; the video is written later.
   */
  async stopWithScreenshot(): Promise<void> {
    const at = this.length;
    const timeout = sleep(SCREENSHOT_TIMEOUT, undefined, { ref: false });
    const closed = this.#pages?.closed;
    const jpeg = await Promise.race([this.#pages?.screenshot(), closed, timeout]).catch(() => {});
    if (jpeg && !this.ended) this.#sampler.add({ at, jpeg });
    void this.stop('stopped');
  }

  /** Ends the recording; only the first call counts. Resolves when the video is written or has failed. */
  stop(reason: RecordingEnd): Promise<void> {
    return (this.#finished ??= this.#finish(reason));
  }

  #stopWith(lease: AbortSignal): void {
    const { signal } = this.#ending;
    lease.addEventListener('abort', () => void this.stop('lease-ended'), { signal });
    const { max_duration_in_seconds: seconds = Infinity } = this.#request;
    const timer = startTimer(seconds * 1000, () => void this.stop('max-duration'));
    signal.addEventListener('abort', () => clock.clearTimeout(timer));
  }

  #save(frame: Frame): void {
    if (frame.jpeg.length > (this.#poster?.length ?? 0)) this.#poster = frame.jpeg;
    if (this.#host.store.hasRoom(this, frame.jpeg.length)) {
      this.#frames.append(frame);
      this.#video.reserve(maxVideoSize(this.frameBytes, this.length));
    } else if (!this.ended) void this.stop('disk-limit');
  }

  async #finish(reason: RecordingEnd): Promise<void> {
    this.#length = this.length;
    this.#ending.abort();
    this.#sampler.flush();
    this.#timeline.add('recording-ended', REASONS[reason]);
    await this.#frames.end();
    const video = await this.#writeVideo().catch((error: Error) => void (this.failure = error.message));
    this.#onWritten();
    if (!video) await this.#video.discard().catch(() => {});
    else await writeFile(this.files.poster, this.#poster ?? '', { mode: 0o600 }).catch(() => {});
    this.#poster = undefined;
    await this.#frames.remove().catch(() => {});
    const finishedAt = new Date(this.startedAt.getTime() + this.#length);
    // The page is complete before the recording is ready.
    await saveReplayPage(this, { video, finishedAt }).catch(
      (error: Error) => (this.failure ??= error.message),
    );
    if (video) this.video = video;
    this.finishedAt = finishedAt;
    this.#host.onFinished(this, reason);
  }

  async #writeVideo(): Promise<Video | undefined> {
    // Without frames, Chromium needs not start.
    if (this.frameBytes === 0) return undefined;
    const framesPerSecond = this.#request.framerate;
    const source = { frames: this.#frames.path, file: this.#video, length: this.length, framesPerSecond };
    return await this.#host.writer.write(source);
  }
}
