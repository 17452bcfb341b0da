import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clock, startTimer } from '../shared/clock.js';
import { createAbort } from '../shared/globals.js';
import { newId, newLinkToken } from '../shared/ids.js';
import { thisProcess } from '../shared/process-id.js';
import type { Completed, Encoder, EndedRecording } from './complete.js';
import { FrameFile } from './frames.js';
import { Journal } from './journal.js';
import { RecorderWorld } from './masks/mask-script.js';
import { PageEvents } from './page-events.js';
import { saveReplayPage } from './page/replay-file.js';
import type { MaskedPictures, RecordedSession, RecordingState, ReplayFacts } from './page/replay-page.js';
import type { PicturedBrowser } from './pictures.js';
import { RecordedContexts, type BidiBrowser } from './recorded-contexts.js';
import { NO_PICTURE } from './no-picture.js';
import { RecordedPages, type PageOfPicture } from './recorded-pages.js';
import { END_REASONS, type RecordingEnd } from './recording-end.js';
import type { RecordingFiles, RecordingStore } from './recording-store.js';
import { Timeline, type TimelineEntry } from './timeline.js';
import { isDiskFull, maxVideoSize, VideoFile, type Video } from './video-file.js';

/** A browser with CDP, or with WebDriver BiDi only. */
export type RecordableBrowser = PicturedBrowser | BidiBrowser;

/** Where the pictures come from. */
interface SourceOfPictures {
  readonly closed: Promise<unknown>;
  picture(of?: PageOfPicture): Promise<unknown>;
  /** Emits a picture soon, also if it does not differ. */
  repeat(): void;
  close(): void;
}

export interface RecordingPlan {
  /** Most pictures per second. */
  readonly framerate: number;
  /** Milliseconds after which the recording ends. Default: none. */
  readonly maxDuration?: number | undefined;
  /** The categories of the timeline. Default: all. */
  readonly categories?: readonly string[] | undefined;
  /** CSS selectors of elements that are masked in pictures and in the timeline. Password fields always are. */
  readonly hide?: readonly string[] | undefined;
  /** Writes one file that contains all. Default: false. */
  readonly isSingle?: boolean | undefined;
  /** The browser can be reached again after its connection was lost. Default: false. */
  readonly goesOn?: boolean | undefined;
}

/** The parts that recordings share. */
export interface RecordingHost {
  readonly store: RecordingStore<Recording>;
  /** Writes the video and the page. */
  readonly complete: (ended: EndedRecording, encoder: Encoder | undefined) => Promise<Completed>;
  /** A video is going to be written. Returns a function to call when none is due any longer. */
  readonly expect: (recording: Recording) => () => void;
  readonly onFinished: (recording: Recording, reason: RecordingEnd) => void;
}

/** A failure in the timeline. */
export interface RecordedFailure {
  /** Whole milliseconds since the recording started. */
  readonly at: number;
  /** Counts it as a failure of the lease. */
  readonly count: () => void;
}

/** Milliseconds within which the first picture of a page shows what it was since it was opened. */
const FIRST_PICTURE = 500;

/** Milliseconds that a page without a picture must be shown to count: of frames in close order, Chromium's encoder drops some. */
const SHORTEST_PICTURE = 100;

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
  video?: Video | undefined;
  /** Why the video or the page could not be written. */
  failure?: string | undefined;
  /** Whether the lease, or a part of it, failed. */
  result: ReplayFacts['result'];
  readonly #plan: RecordingPlan;
  readonly #host: RecordingHost;
  readonly #timeline: Timeline;
  readonly #events: PageEvents;
  readonly #world: RecorderWorld;
  readonly #journal: Journal | undefined;
  readonly #video: VideoFile;
  readonly #frames: FrameFile;
  readonly #ending = createAbort();
  readonly #started = clock.now();
  /** The time of the last frame: frames are in the order of time. */
  #lastAt = 0;
  /** No earlier moment is shown (`clock.now()`): until then, the recording was paused. */
  #shownFrom = 0;
  /** Since when a page is shown that has no picture yet, behind the picture of another one (`clock.now()`). */
  #unseenSince: number | undefined;
  /** The frame with the most bytes, which shows the most, until it is on the disk. */
  #poster: Buffer | undefined;
  #masked: MaskedPictures | undefined;
  #pages: SourceOfPictures | undefined;
  #length: number | undefined;
  #isDiscarded = false;
  #onWritten = (): void => {};
  #onFirst = (): void => {};
  #onAttached!: () => void;
  /** Resolves when events of the pages arrive, over the first connection. */
  readonly attached = new Promise<void>((resolve) => (this.#onAttached = resolve));
  #finished: Promise<void> | undefined;

  /** @throws if the disk has no space for a video. */
  constructor(session: RecordedSession, plan: RecordingPlan, host: RecordingHost) {
    this.session = session;
    this.#plan = plan;
    this.#host = host;
    const onChange = (entry: TimelineEntry, index?: number) => this.#journal?.add(entry, index);
    this.#timeline = new Timeline(plan.categories, (moment) => this.#timeOf(moment), onChange);
    this.#world = new RecorderWorld(plan.hide ?? []);
    this.#events = new PageEvents(this.#timeline, this.#world);
    const onFailure = (error: Error) => void this.stop(isDiskFull(error) ? 'disk-full' : 'disk-failed');
    this.files = host.store.createFiles(this);
    const { saved } = this.files;
    try {
      this.#video = new VideoFile(this.files.video, onFailure, saved !== undefined);
      this.#journal = saved && new Journal(saved.journal, this.#head, onFailure);
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
    const { state, replayId, session, failure, video, startedAt, result } = this;
    const { leaseId: _leaseId, ...shown } = session;
    const { path: _path, ...seen } = video ?? { path: '' };
    return {
      ...shown,
      state,
      replayId,
      result,
      masked: this.#masked,
      startedAt: startedAt.toISOString(),
      finishedAt: this.finishedAt?.toISOString(),
      failure,
      timeline: this.#timeline.entries,
      video: video && (seen as ReplayFacts['video']),
    };
  }

  get #head() {
    const { replayId, session } = this;
    const { framerate, isSingle = false } = this.#plan;
    const startedAt = this.startedAt.toISOString();
    return { replayId, session, startedAt, framesPerSecond: framerate, isSingle, process: thisProcess() };
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
  async start(browser: RecordableBrowser): Promise<void> {
    // Its link opens at once.
    await this.#savePage();
    const first = new Promise<void>((resolve) => (this.#onFirst = resolve));
    const pages = await this.follow(browser);
    if (this.ended) return;
    await Promise.race([first, pages.closed, sleep(FIRST_FRAME_TIMEOUT, undefined, { ref: false })]);
    // After the first frame: the start of the encoder must not delay the start of the recording.
    if (!this.ended) this.#onWritten = this.#host.expect(this);
  }

  /** Records the browser over this connection, also if an earlier connection to it was lost. */
  async follow(browser: RecordableBrowser): Promise<SourceOfPictures> {
    const pages = await this.#open(browser);
    if (this.ended) {
      pages.close();
      return pages;
    }
    this.#onAttached();
    this.#pages?.close();
    this.#pages = pages;
    this.#ending.signal.addEventListener('abort', () => pages.close());
    if (!this.#plan.goesOn) void pages.closed.then(() => this.stop('browser-gone'));
    return pages;
  }

  async #open(browser: RecordableBrowser): Promise<SourceOfPictures> {
    const interval = 1000 / this.#plan.framerate;
    const onPicture = (jpeg: Buffer, since: number, isCovered = false) => {
      if (isCovered) this.#noteMask('covered');
      this.#save(jpeg, since);
      this.#onFirst();
    };
    if ('bidi' in browser) {
      const note = (kind: TimelineEntry['kind'], text: string) => void this.note(kind, text);
      const onLeftOut = () => this.#noteMask('left-out');
      return new RecordedContexts(browser, {
        interval,
        onPicture,
        onLeftOut,
        note,
        hide: this.#plan.hide ?? [],
      });
    }
    return RecordedPages.open(browser, {
      interval,
      onPicture,
      onShown: (at) => this.#noteUnseen(at),
      names: this.#events.names,
      onPage: (page) => this.#events.enable(page),
      onFrame: (frame) => this.#events.enableScripts(frame),
      world: this.#world,
      onEvent: (event, at) => this.#events.add(event, at),
    });
  }

  /** Something has failed. It counts as a failure of the lease only when `count` is called: an attempt may be repeated. */
  fail(text: string, of?: string): RecordedFailure {
    if (!this.ended) this.#events.addWaiting();
    const moment = clock.now();
    const index = this.ended ? undefined : this.#timeline.add('attempt-failed', text, undefined, moment);
    const count = () => {
      if (index === undefined || this.ended) return;
      this.result = 'failed';
      this.#timeline.count(index, of);
    };
    return { at: this.#timeOf(moment), count };
  }

  /** Adds an entry to the timeline. @returns A function that ends a call, with the reason if it failed. */
  note(kind: TimelineEntry['kind'], text: string, moment?: number): (failed?: string) => void {
    const index = this.ended ? undefined : this.#timeline.add(kind, text, undefined, moment);
    return (failed) => {
      if (index !== undefined && !this.ended) this.#timeline.end(index, failed);
    };
  }

  /** Shows nothing of the browser until the returned function is called. @param why For the timeline. */
  pause(why: string): () => void {
    this.note('mark', why);
    this.#timeline.isPaused = true;
    this.#shownFrom = Infinity;
    return () => {
      this.#timeline.isPaused = false;
      this.#shownFrom = clock.now();
      // A page that is still has no other picture.
      this.#pages?.repeat();
    };
  }

  /** Ends the recording with a last picture of the page. Resolves when the browser is no longer in use; the video is written later. */
  async stopWithPicture(): Promise<void> {
    await this.takePicture();
    void this.stop('stopped');
  }

  /** Takes a picture of the page now. Never rejects. @param of Default: the active page. */
  async takePicture(of?: PageOfPicture): Promise<void> {
    const timeout = sleep(PICTURE_TIMEOUT, undefined, { ref: false });
    const closed = this.#pages?.closed;
    await Promise.race([this.#pages?.picture(of), closed, timeout]).catch(() => {});
  }

  /** Ends the recording when the lease ends. */
  stopWith(lease: AbortSignal): void {
    const { signal } = this.#ending;
    lease.addEventListener('abort', () => void this.stop('lease-ended'), { signal });
  }

  /**
   * Ends the recording; only the first call counts. Resolves when the video is written or has failed.
   *
   * @param encoder Writes the video. Default: the one of the recorder.
   */
  stop(reason: RecordingEnd, encoder?: Encoder): Promise<void> {
    return (this.#finished ??= this.#finish(reason, encoder));
  }

  /** Ends the recording without a video. */
  async discard(): Promise<void> {
    this.#isDiscarded = true;
    await this.stop('stopped');
  }

  #noteMask(masked: MaskedPictures): void {
    if (this.#masked === undefined && !this.ended) this.#journal?.addMask(masked);
    this.#masked ??= masked;
  }

  /** Another page is shown. The picture of the one before must not stand for it. */
  #noteUnseen(at: number): void {
    if (at - (this.#unseenSince ?? -Infinity) < SHORTEST_PICTURE) return;
    this.#showUnseen();
    if (this.frameBytes > 0) this.#unseenSince = at;
  }

  /** No picture of the page was taken. */
  #showUnseen(): void {
    const since = this.#unseenSince;
    this.#unseenSince = undefined;
    if (since !== undefined) this.#append(NO_PICTURE, since);
  }

  #save(jpeg: Buffer, taken: number): void {
    const since = this.#unseenSince ?? taken;
    const isLate = taken - since > FIRST_PICTURE;
    if (isLate) this.#showUnseen();
    this.#unseenSince = undefined;
    this.#append(jpeg, isLate ? taken : since);
  }

  #append(jpeg: Buffer, since: number): void {
    if (this.ended || since < this.#shownFrom) return;
    if (jpeg.length > (this.#poster?.length ?? 0)) this.#poster = jpeg;
    if (this.#host.store.hasCapacity(this, jpeg.length)) {
      this.#lastAt = Math.max(this.#lastAt, this.#timeOf(since));
      this.#frames.append({ at: this.#lastAt, jpeg });
      this.#video.reserve(maxVideoSize(this.frameBytes, this.length));
    } else void this.stop('disk-limit');
  }

  async #finish(reason: RecordingEnd, encoder: Encoder | undefined): Promise<void> {
    this.#showUnseen();
    this.#length = this.length;
    this.#ending.abort();
    this.#timeline.add('recording-ended', END_REASONS[reason]);
    await Promise.all([
      this.#frames.end(),
      this.#journal?.end({ length: this.#length, result: this.result }),
    ]);
    const finishedAt = new Date(this.startedAt.getTime() + this.#length);
    const ended = {
      files: this.files,
      file: this.#video,
      length: this.#length,
      framesPerSecond: this.#plan.framerate,
      isSingle: this.#plan.isSingle ?? false,
      facts: { ...this.facts, finishedAt: finishedAt.toISOString() },
    };
    const done = await this.#complete(ended, encoder).catch((error: Error) => ({ failure: error.message }));
    this.#onWritten();
    this.#poster = undefined;
    // The page is complete before the recording is ready.
    const completed: Completed = done;
    this.failure = completed.failure;
    this.video = completed.video;
    this.finishedAt = finishedAt;
    this.#host.onFinished(this, reason);
  }

  async #complete(ended: EndedRecording, encoder: Encoder | undefined): Promise<Completed> {
    if (!this.#isDiscarded) return this.#host.complete(ended, encoder);
    await this.#video.discard();
    return {};
  }

  /** Writes the page of a recording that runs, if it outlives this process. */
  async #savePage(): Promise<void> {
    const { saved, video, poster } = this.files;
    const files = { video: basename(video), poster: basename(poster) };
    if (saved) await saveReplayPage(saved.page, { ...this.facts, files });
  }
}
