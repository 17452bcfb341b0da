import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clock, startTimer } from '../shared/clock.js';
import { newId, newLinkToken } from '../shared/ids.js';
import { FrameFile } from './frames.js';
import { PageEvents } from './page-events.js';
import { saveReplayPage } from './page/replay-file.js';
import type { RecordedSession, RecordingState, ReplayFacts } from './page/replay-page.js';
import type { PicturedBrowser } from './pictures.js';
import { RecordedPages } from './recorded-pages.js';
import type { RecordingFiles, RecordingStore } from './recording-store.js';
import { Timeline } from './timeline.js';
import { END_REASONS, type RecordingEnd } from './recording-end.js';
import { isDiskFull, maxVideoSize, VideoFile, type Video } from './video-file.js';
import type { VideoWriter } from './video-writer.js';
import { createAbort } from '../shared/globals.js';

export interface RecordingPlan {
  /** Most pictures per second. */
  readonly framerate: number;
  /** Milliseconds after which the recording ends. Default: none. */
  readonly maxDuration?: number | undefined;
  /** The categories of the timeline. Default: all. */
  readonly categories?: readonly string[] | undefined;
}

/** The parts that recordings share. */
interface RecordingHost {
  readonly store: RecordingStore<Recording>;
  readonly writer: VideoWriter;
  readonly onFinished: (recording: Recording, reason: RecordingEnd) => void;
}

/** Milliseconds to wait for the first frame. A browser without pages sends none. */
const FIRST_FRAME_TIMEOUT = 5_000;

/** Milliseconds to wait for the last picture. */
const PICTURE_TIMEOUT = 1_000;

/** One recording: collects frames until it ends, and then writes the video. */
export class Recording {
  readonly replayId = newId();
  /** The secret of the link to the replay page. */
  readonly linkToken = newLinkToken();
  readonly session: RecordedSession;
  readonly startedAt = new Date();
  readonly files: RecordingFiles;
  /** When the recording ended. Missing until its video is written, or has failed. */
  finishedAt?: Date;
  /** Missing until the video is written, and for a recording without frames. */
  video?: Video;
  /** Why the video or the page could not be written. */
  failure?: string;
  readonly #plan: RecordingPlan;
  readonly #host: RecordingHost;
  readonly #timeline: Timeline;
  readonly #video: VideoFile;
  readonly #frames: FrameFile;
  readonly #ending = createAbort();
  readonly #started = clock.now();
  /** The time of the last frame: frames are in the order of time. */
  #lastAt = 0;
  /** The frame with the most bytes, which shows the most, until it is on the disk. */
  #poster: Buffer | undefined;
  #pages: RecordedPages | undefined;
  #length: number | undefined;
  #onWritten = (): void => {};
  #finished: Promise<void> | undefined;

  /** @throws if the disk has no space for a video. */
  constructor(session: RecordedSession, plan: RecordingPlan, host: RecordingHost) {
    this.session = session;
    this.#plan = plan;
    this.#host = host;
    this.#timeline = new Timeline(plan.categories, (moment) => this.#timeOf(moment));
    const onFailure = (error: Error) => void this.stop(isDiskFull(error) ? 'disk-full' : 'disk-failed');
    this.files = host.store.createFiles(this);
    try {
      this.#video = new VideoFile(this.files.video, onFailure);
    } catch (error) {
      host.store.removeFiles(this.files);
      throw error;
    }
    this.#frames = new FrameFile(this.files.frames, onFailure);
    const timer = startTimer(plan.maxDuration ?? Infinity, () => void this.stop('max-duration'));
    this.#ending.signal.addEventListener('abort', () => clock.clearTimeout(timer));
  }

  get state(): RecordingState {
    if (this.video) return 'ready';
    if (this.finishedAt) return 'none';
    return this.ended ? 'writing' : 'recording';
  }

  /** What the page of the recording shows. */
  get facts(): ReplayFacts {
    const { state, replayId, session, failure, video, startedAt } = this;
    return {
      state,
      replayId,
      sessionId: session.sessionId,
      pool: session.pool,
      leaseName: session.leaseName,
      startedAt: startedAt.toISOString(),
      finishedAt: this.finishedAt?.toISOString(),
      failure,
      timeline: this.#timeline.entries,
      video: video && withoutPath(video),
    };
  }

  /** In milliseconds. Grows until the recording ends. */
  get length(): number {
    return this.#length ?? clock.now() - this.#started;
  }

  /** Whole milliseconds from the start of the recording to a moment: a video and a timeline have no others. */
  #timeOf(moment: number): number {
    return Math.floor(this.#length ?? moment - this.#started);
  }

  get ended(): boolean {
    return this.#length !== undefined;
  }

  get frameBytes(): number {
    return this.#frames.bytes;
  }

  get bytes(): number {
    return this.finishedAt ? (this.video?.size ?? 0) : this.frameBytes + this.#video.reserved;
  }

  /** Reads the picture for the time before the video plays. Its first frame is often an empty page. */
  async readPoster(): Promise<Buffer | undefined> {
    return this.#poster ?? (await readFile(this.files.poster).catch(() => undefined));
  }

  /** Starts to collect frames. Resolves after the first frame, so that also a very short recording has a video. */
  async start(browser: PicturedBrowser): Promise<void> {
    // Its link opens at once.
    await this.#savePage({});
    const events = new PageEvents(this.#timeline);
    let onFirst!: () => void;
    const first = new Promise<void>((resolve) => (onFirst = resolve));
    const pages = await RecordedPages.open(browser, {
      interval: 1000 / this.#plan.framerate,
      onPicture: (jpeg, since) => {
        this.#save(jpeg, since);
        onFirst();
      },
      names: events.names,
      onPage: (page) => events.enable(page),
      onEvent: (event, at) => events.add(event, at),
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
  note(kind: 'connected' | 'disconnected', client: string): void {
    if (!this.ended) this.#timeline.add(kind, client);
  }

  /**
   * Ends the recording with a last picture of the page. Resolves when the browser is no longer in use; the video is written
   * later.
   */
  async stopWithPicture(): Promise<void> {
    const timeout = sleep(PICTURE_TIMEOUT, undefined, { ref: false });
    const closed = this.#pages?.closed;
    await Promise.race([this.#pages?.picture(), closed, timeout]).catch(() => {});
    void this.stop('stopped');
  }

  /** Ends the recording when the lease ends. */
  stopWith(lease: AbortSignal): void {
    const { signal } = this.#ending;
    lease.addEventListener('abort', () => void this.stop('lease-ended'), { signal });
  }

  /** Ends the recording; only the first call counts. Resolves when the video is written or has failed. */
  stop(reason: RecordingEnd): Promise<void> {
    return (this.#finished ??= this.#finish(reason));
  }

  #save(jpeg: Buffer, since: number): void {
    if (this.ended) return;
    if (jpeg.length > (this.#poster?.length ?? 0)) this.#poster = jpeg;
    if (this.#host.store.hasRoom(this, jpeg.length)) {
      this.#lastAt = Math.max(this.#lastAt, this.#timeOf(since));
      this.#frames.append({ at: this.#lastAt, jpeg });
      this.#video.reserve(maxVideoSize(this.frameBytes, this.length));
    } else void this.stop('disk-limit');
  }

  async #finish(reason: RecordingEnd): Promise<void> {
    this.#length = this.length;
    this.#ending.abort();
    this.#timeline.add('recording-ended', END_REASONS[reason]);
    await this.#frames.end();
    const video = await this.#writeVideo().catch((error: Error) => void (this.failure = error.message));
    this.#onWritten();
    if (!video) await this.#video.discard().catch(() => {});
    else await writeFile(this.files.poster, this.#poster ?? '', { mode: 0o600 }).catch(() => {});
    this.#poster = undefined;
    await this.#frames.remove().catch(() => {});
    const finishedAt = new Date(this.startedAt.getTime() + this.#length);
    // The page is complete before the recording is ready.
    const ended = {
      state: video ? 'ready' : 'none',
      finishedAt: finishedAt.toISOString(),
      video: video && withoutPath(video),
    } as const;
    await this.#savePage(ended).catch((error: Error) => (this.failure ??= error.message));
    if (video) this.video = video;
    this.finishedAt = finishedAt;
    this.#host.onFinished(this, reason);
  }

  async #writeVideo(): Promise<Video | undefined> {
    // Without frames, Chromium needs not start.
    if (this.frameBytes === 0) return undefined;
    const framesPerSecond = this.#plan.framerate;
    const source = { frames: this.#frames.path, file: this.#video, length: this.length, framesPerSecond };
    return await this.#host.writer.write(source);
  }

  /**
   * Writes the page beside the video, if the recording outlives this process.
   *
   * @param ended The facts of a recording that has ended, before they are public.
   */
  async #savePage(ended: Partial<ReplayFacts>): Promise<void> {
    const { page, video, poster } = this.files;
    const files = { video: basename(video), poster: basename(poster) };
    if (page !== undefined) await saveReplayPage(page, { ...this.facts, ...ended, files });
  }
}

function withoutPath({ path: _path, ...facts }: Video): ReplayFacts['video'] {
  return facts;
}
