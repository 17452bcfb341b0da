import { raceAbort, raceTimeout, startTimer } from '../../shared/abort.js';
import type { TelemetryCategory } from '../../service/wire.js';
import type { RecordingEnd } from '../events.js';
import { newId } from '../identifiers.js';
import type { Lease } from '../pool/lease.js';
import type { DevToolsAddress } from '../browser/cdp-connection.js';
import type { Frame } from './frame.js';
import { isDiskFull } from './disk-full.js';
import { FilmFile } from './film-file.js';
import { FrameSampler } from './frame-sampler.js';
import type { Film, LocalReplay, TimelineEntry } from './local-replay.js';
import { PageEvents } from './page-events.js';
import type { RecordingRequest } from './recording-request.js';
import { RecordedPages } from './recorded-pages.js';
import { Spool } from './spool.js';
import { Timeline } from './timeline.js';
import { largestFilm, type FilmOrder } from './write-film.js';

const REASONS: Readonly<Record<RecordingEnd, string>> = {
  stopped: 'it was stopped',
  'max-duration': 'its longest duration was reached',
  'lease-ended': 'the lease ended',
  'browser-gone': 'the browser is gone',
  'disk-limit': 'the limit of bytes was reached',
  'disk-full': 'the disk is full',
  'disk-failed': 'the disk took no more',
};

/** Milliseconds that a browser may take for its first frame: one without a page shows none. */
const FIRST_FRAME = 5_000;

/** Milliseconds that a page may take for its last picture. */
const LAST_PICTURE = 1_000;

/** What a recording needs from its recorder. */
export interface RecordingHost {
  /** Where its frames are kept until the film is made. */
  readonly spoolPath: (replayId: string) => string;
  /** Where its film will be. */
  readonly filmPath: (replayId: string) => string;
  /** Whether it may write so many bytes more. */
  readonly hasRoom: (recording: Recording, more: number) => boolean;
  /** Makes its film. */
  readonly develop: (order: FilmOrder) => Promise<Film | undefined>;
  readonly onFinished: (recording: Recording, reason: RecordingEnd) => void;
}

/** Whose recording it is, and how it is made. */
export interface RecordingPlan {
  readonly pool: string;
  readonly telemetry: readonly TelemetryCategory[] | undefined;
  readonly request: RecordingRequest;
}

/** One recording: it takes frames until it is stopped by whatever comes first, and then has its film made. */
export class Recording implements LocalReplay {
  readonly replayId = newId();
  readonly sessionId: string;
  readonly pool: string;
  readonly leaseName?: string;
  readonly startedAt = new Date();
  finishedAt?: Date;
  film?: Film;
  failure?: string;
  readonly request: RecordingRequest;
  readonly #host: RecordingHost;
  readonly #timeline: Timeline;
  readonly #sampler: FrameSampler;
  readonly #file: FilmFile;
  readonly #spool: Spool;
  readonly #ending = new AbortController();
  readonly #started = performance.now();
  #pages: RecordedPages | undefined;
  #length: number | undefined;
  #finished: Promise<void> | undefined;

  /** @throws when the disk has no room for a film. */
  constructor(lease: Lease, { pool, telemetry, request }: RecordingPlan, host: RecordingHost) {
    this.sessionId = lease.browser.sessionId;
    this.pool = pool;
    if (lease.request.name !== undefined) this.leaseName = lease.request.name;
    this.request = request;
    this.#host = host;
    this.#timeline = new Timeline(telemetry, () => this.length);
    this.#sampler = new FrameSampler(1000 / request.framerate, (frame) => this.#keep(frame));
    const onFailure = (error: Error) => void this.stop(isDiskFull(error) ? 'disk-full' : 'disk-failed');
    const [film, spool] = [host.filmPath(this.replayId), host.spoolPath(this.replayId)];
    this.#file = new FilmFile(film, onFailure);
    this.#spool = new Spool(spool, onFailure);
    this.#stopWith(lease.signal);
  }

  get timeline(): readonly TimelineEntry[] {
    return this.#timeline.entries;
  }

  /** In milliseconds; it grows until the recording ends. */
  get length(): number {
    return this.#length ?? performance.now() - this.#started;
  }

  get ended(): boolean {
    return this.#length !== undefined;
  }

  /** Bytes of its frames so far. */
  get frameBytes(): number {
    return this.#spool.bytes;
  }

  /** Bytes on the disk. */
  get bytes(): number {
    return this.finishedAt ? (this.film?.size ?? 0) : this.frameBytes + this.#file.room;
  }

  /** Begins to take frames. Resolves with the first one: a recording that is stopped at once has a film all the same. */
  async start(browser: DevToolsAddress): Promise<void> {
    const events = new PageEvents(this.#timeline);
    let onFirst!: () => void;
    const first = new Promise<void>((resolve) => (onFirst = resolve));
    const pages = await RecordedPages.open(browser, {
      interval: 1000 / this.request.framerate,
      onFrame: (jpeg) => {
        this.#sampler.add({ at: this.length, jpeg });
        onFirst();
      },
      onPage: (page) => events.listen(page),
      onEvent: (event) => events.add(event),
    });
    if (this.ended) return pages.close();
    this.#pages = pages;
    this.#ending.signal.addEventListener('abort', () => pages.close());
    void pages.closed.then(() => this.stop('browser-gone'));
    const late = () => new Error('No page shows anything.');
    await raceTimeout(FIRST_FRAME, () => Promise.race([first, pages.closed]), late).catch(() => {});
  }

  /** A client's connection came or went. */
  note(kind: 'connected' | 'disconnected', protocol: string): void {
    if (!this.ended) this.#timeline.add(kind, protocol);
  }

  /**
   * Ends it with a picture of what is shown now: of a page that is left within moments no frame may have come yet.
   * Resolves when the browser is not looked at any more; the film is made after that.
   */
  async stopWithPicture(): Promise<void> {
    const at = this.length;
    const jpeg = await this.#takePicture().catch(() => undefined);
    if (jpeg && !this.ended) this.#sampler.add({ at, jpeg });
    void this.stop('stopped');
  }

  /** Ends it; the first reason counts. Resolves when the film is made, or it is known that there is none. */
  stop(reason: RecordingEnd): Promise<void> {
    return (this.#finished ??= this.#finish(reason));
  }

  async #takePicture(): Promise<Buffer | undefined> {
    const pages = this.#pages;
    const late = () => new Error('The page does not answer.');
    if (!pages || this.ended) return undefined;
    return raceTimeout(LAST_PICTURE, () => raceAbort(pages.picture(), this.#ending.signal), late);
  }

  #stopWith(lease: AbortSignal): void {
    const { signal } = this.#ending;
    lease.addEventListener('abort', () => void this.stop('lease-ended'), { signal });
    const { max_duration_in_seconds: longest = Infinity } = this.request;
    const timer = startTimer(longest * 1000, () => void this.stop('max-duration'));
    signal.addEventListener('abort', () => clearTimeout(timer));
  }

  #keep(frame: Frame): void {
    if (this.#host.hasRoom(this, frame.jpeg.length)) {
      this.#spool.append(frame);
      this.#file.keepRoom(largestFilm(this.frameBytes, this.length));
    } else if (!this.ended) void this.stop('disk-limit');
  }

  async #finish(reason: RecordingEnd): Promise<void> {
    this.#length = this.length;
    this.#ending.abort();
    this.#sampler.flush();
    this.#timeline.add('recording-ended', `The recording ended: ${REASONS[reason]}.`);
    await this.#spool.end();
    let film: Film | undefined;
    try {
      film = await this.#develop();
    } catch (error) {
      this.failure = (error as Error).message;
    }
    if (!film) await this.#file.discard().catch(() => {});
    await this.#spool.remove().catch(() => {});
    if (film) this.film = film;
    this.finishedAt = new Date(this.startedAt.getTime() + this.#length);
    this.#host.onFinished(this, reason);
  }

  async #develop(): Promise<Film | undefined> {
    // Nothing was shown: no Chromium is started for that.
    if (this.frameBytes === 0) return undefined;
    const { length, request } = this;
    const frames = this.#spool.path;
    return await this.#host.develop({ frames, file: this.#file, length, framesPerSecond: request.framerate });
  }
}
