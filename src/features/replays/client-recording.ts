import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import type { Opening } from '../../drivers/extension.js';
import type { FeatureContext } from '../../lease/feature.js';
import { recordingsFolder } from '../../pool/local-service.js';
import type { LocalOptions } from '../../pool/pool-options.js';
import { titleOf } from '../../recorder/page/title.js';
import { BrowserPictures, type PicturedBrowser } from '../../recorder/pictures.js';
import { Recorder } from '../../recorder/recorder.js';
import type { PageOfPicture } from '../../recorder/recorded-pages.js';
import type { RecordableBrowser, Recording } from '../../recorder/recording.js';
import type { TimelineEntry } from '../../recorder/timeline.js';
import { VideoWriter } from '../../recorder/video-writer.js';
import type { Replay } from '../../services/browser-service.js';
import { onAbort, raceTimeout } from '../../shared/abort.js';
import { asError } from '../../shared/errors.js';
import { propertyOf } from '../../shared/json.js';
import { beforeProcessEnds } from '../../shared/process-end.js';
import { CdpClient } from '../../wire/cdp-client.js';
import type { RecordingSettings } from './options.js';
import { RecordingProcess } from './recording-process.js';
import type { ReplaysStep } from './recordings.js';

/** Pictures per second. */
const FRAME_RATE = 10;
/** Bytes of pictures after which a recording ends. */
const MAX_BYTES = 512 * 1024 * 1024;
/** Milliseconds that the callback waits for the recording: otherwise the replay would lack what comes first. */
const ATTACH_TIMEOUT = 2_000;
const DAY = 86_400_000;
const PAUSED = 'A person took over. Meanwhile, nothing is recorded.';

const writing = new RecordingProcess();
/** By their folders and limits. */
const recorders = new Map<string, Recorder>();

function recorderFor({ folder, keep: { days, bytes } }: RecordingSettings, local?: LocalOptions): Recorder {
  const path = recordingsFolder(folder ?? local?.recordings);
  const key = JSON.stringify([path, days, bytes]);
  const known = recorders.get(key);
  if (known) return known;
  const limits = { folder: path, maxBytes: MAX_BYTES, maxTotalBytes: bytes, keep: Infinity };
  const recorder = new Recorder({ limits: { ...limits, maxAge: days * DAY }, encoder: writing });
  recorders.set(key, recorder);
  return recorder;
}

/** A recording of a lease by this process, over WebSockets of its own, from `begin` to `stop`. */
export class ClientRecording {
  readonly #lease: FeatureContext<ReplaysStep>;
  readonly #settings: RecordingSettings;
  readonly #recorder: Recorder;
  #opening: Opening | undefined;
  /** This process is to record. */
  hasBegun = false;
  /** It could not. */
  isUnavailable = false;
  #recording: Promise<Recording | undefined> | undefined;
  /** Resolves when a further connection is recorded, too. */
  #again: Promise<unknown> | undefined;
  /** Once it has started. */
  #started: Recording | undefined;
  #failedAt: number | undefined;
  /** The last call of the library that failed. */
  #failedCall: { readonly text: string; readonly failed: string } | undefined;
  #unguard = () => {};
  #isPaused = false;
  #resume = () => {};

  constructor(lease: FeatureContext<ReplaysStep>, settings: RecordingSettings) {
    this.#lease = lease;
    this.#settings = settings;
    this.#recorder = recorderFor(settings, lease.service.local);
    onAbort(lease.abandoned, () => void this.discard());
  }

  /** Starts as soon as there is a connection. */
  begin(): void {
    this.hasBegun = true;
    if (this.#opening) this.#follow(this.#opening);
  }

  /** The browser can be reached over this connection, for the first time or again. */
  connect(opening: Opening): void {
    this.#opening = opening;
    if (this.hasBegun) this.#follow(opening);
  }

  /** Resolves when the recording sees what pages do, or after a while. Never rejects. */
  async attached(): Promise<void> {
    const over = this.#recording?.then(() => {});
    const attached = this.#again ?? Promise.race([this.#started?.attached ?? over, over]);
    await raceTimeout(ATTACH_TIMEOUT, async () => attached).catch(() => {});
  }

  /** The replay; undefined if there is none. */
  get replay(): Replay | undefined {
    const recording = this.#started;
    if (!recording) return undefined;
    const { replayId, startedAt, finishedAt } = recording;
    const { pool, lease } = this.#lease.service;
    return {
      replay_id: replayId,
      started_at: startedAt.toISOString(),
      ...(finishedAt && { finished_at: finishedAt.toISOString() }),
      replay_view_url: this.#url(recording),
      access: 'public',
      name: titleOf({ timeline: [], leaseName: lease.name, pool }),
      recorded_by: 'client',
    };
  }

  /** Link to the moment of the first failure. */
  get moment(): string | undefined {
    const recording = this.#started;
    if (!recording || this.#failedAt === undefined) return undefined;
    return momentOf(this.#url(recording), this.#failedAt);
  }

  /** Adds an entry to the timeline. Returns a function that ends a call, with the reason if it failed. */
  note(kind: TimelineEntry['kind'], text: string, moment?: number): (failed?: string) => void {
    const end = this.#started?.note(kind, text, moment);
    return (failed) => {
      if (failed !== undefined) this.#failedCall = { text, failed };
      end?.(failed);
    };
  }

  /** Shows nothing of the browser until the returned function is called. */
  pause(): (end: string) => void {
    this.#isPaused = true;
    if (this.#started) this.#resume = this.#started.pause(PAUSED);
    return (end) => {
      this.#isPaused = false;
      this.#resume();
      this.#resume = () => {};
      this.note('mark', end);
    };
  }

  /** Takes a picture of a page before it is closed. */
  async takePicture(of: PageOfPicture | undefined): Promise<void> {
    await this.#started?.takePicture(of);
  }

  /**
   * Something has failed. It counts as a failure of the lease when `count` is called.
   *
   * @param of The test or the input, as people call it.
   */
  fail(error: unknown, of?: string): { readonly moment: string; readonly count: () => void } | undefined {
    const recording = this.#started;
    if (!recording || recording.ended) return undefined;
    const failure = describeFailure(error);
    const { text, failed } = this.#failedCall ?? { text: '', failed: '' };
    // The error of a call does not always name what the call was for.
    const isOfCall = failed !== '' && failure.startsWith(failed) && !failure.includes(text);
    const { at, count } = recording.fail(isOfCall ? `${failure} · ${text}` : failure, of);
    return {
      moment: momentOf(this.#url(recording), at),
      count: () => {
        this.#failedAt ??= at;
        count();
      },
    };
  }

  /**
   * Ends the recording. Resolves when the browser is not needed any longer; the video is written later.
   *
   * @param isReachable The browser can still be used.
   * @param timeout Milliseconds for a video that only the browser itself can write.
   * @param failure Why the lease failed.
   */
  async stop(isReachable: boolean, timeout: number, failure?: { readonly error: unknown }): Promise<void> {
    // The first picture of a page that shows nothing takes seconds.
    const recording = this.#started ?? (await this.#recording);
    if (!recording || recording.ended) return;
    const { sessionId, emit } = this.#lease;
    const isOk = !failure && recording.result === undefined;
    if (this.#settings.keepOnly === 'failures' && isOk) return this.discard();
    // Before the failure, whose moment shows it.
    if (isReachable) await recording.takePicture();
    if (failure) this.fail(failure.error)?.count();
    recording.result ??= 'succeeded';
    const finished = this.#finish(recording, isReachable, timeout);
    emit({ type: 'recording-stopped', sessionId, replay: this.replay! });
    await finished;
  }

  /** Resolves when the video is written, and the page complete. */
  async completed(): Promise<void> {
    const recording = await this.#recording;
    if (!recording) return;
    await recording.stop('lease-ended');
    this.#recorder.forget(recording);
    this.#unguard();
    if (recording.failure !== undefined) this.#lease.addError(new Error(recording.failure));
  }

  /** Ends and removes the recording. */
  async discard(): Promise<void> {
    const recording = this.#started ?? (await this.#recording);
    this.#recording = undefined;
    this.#started = undefined;
    this.#unguard();
    await recording?.discard();
    if (recording) this.#recorder.remove(recording);
  }

  #url({ files }: Recording): string {
    return pathToFileURL(files.saved!.page).href;
  }

  #follow(opening: Opening): void {
    const browser = this.#browserOver(opening);
    if (!this.#recording) this.#recording = this.#start(browser);
    else {
      this.#again = this.#recording.then((recording) => recording?.follow(browser));
      this.#again.catch(() => {});
    }
  }

  /** With WebDriver BiDi alone, the browser has no further connection. */
  #browserOver(opening: Opening): RecordableBrowser {
    if (this.#lease.grant.cdpUrl === undefined) return { bidi: opening.own };
    const source = sourceOf(opening);
    return { source, pictures: new BrowserPictures(source) };
  }

  async #start(browser: RecordableBrowser): Promise<Recording | undefined> {
    const { sessionId, service, abandoned, emit, addError } = this.#lease;
    const { name, tags } = service.lease;
    const session = { sessionId, leaseId: sessionId, leaseName: name, tags, pool: service.pool };
    const { frameRate = FRAME_RATE, maxDuration, single: isSingle, hide } = this.#settings;
    const plan = { framerate: frameRate, maxDuration, isSingle, hide, goesOn: true };
    const onStarted = (recording: Recording) => {
      this.#started = recording;
      if (this.#isPaused) this.#resume = recording.pause(PAUSED);
      const beforeEnd = () => recording.stop('lease-ended');
      this.#unguard = beforeProcessEnds({ beforeEnd });
      emit({ type: 'recording-started', sessionId, replay: this.replay! });
    };
    const recorded = { ...session, service: service.facts.name };
    try {
      return await this.#recorder.record(browser, recorded, plan, { signal: abandoned, onStarted });
    } catch (cause) {
      this.#started = undefined;
      this.isUnavailable = true;
      const error = asError(cause);
      addError(error);
      emit({ type: 'recording-unavailable', sessionId, error });
      return undefined;
    }
  }

  /** Without another way to write the video, the leased browser writes it, before it is cleaned. */
  async #finish(recording: Recording, isReachable: boolean, timeout: number): Promise<void> {
    const opening = this.#opening;
    const isHere = (await writing.encoder) !== 'none';
    const hasEncoder = opening && this.#lease.grant.cdpUrl !== undefined;
    if (isHere || !isReachable || !hasEncoder) return void recording.stop('lease-ended');
    const writer = new VideoWriter(async () => ({ source: sourceOf(opening) }));
    await raceTimeout(timeout, () => recording.stop('lease-ended', writer)).catch(() => {});
    await writer.close();
  }
}

function sourceOf(opening: Opening): PicturedBrowser['source'] {
  return async (listeners) => new CdpClient(await opening.openCdp(opening.signal), listeners);
}

/**
 * What failed, in one line, with what an assertion expected. Without Playwright's log of its calls, and without the value of a field, which
 * can be what was typed.
 */
function describeFailure(error: unknown): string {
  const given = propertyOf(error, 'message');
  const message = stripVTControlCharacters(typeof given === 'string' ? given : asError(error).message);
  const [text = ''] = message.split(/\n\s*Call log:/, 1);
  const lines = text.split('\n').map((line) => line.trim());
  const shown = /\.toHaveValues?\(/.test(message) ? lines.slice(0, 1) : lines;
  return shown.filter(Boolean).join(' · ');
}

/** Link to a moment of a replay. @param at Whole milliseconds since the recording started. */
function momentOf(url: string, at: number): string {
  return `${url}#t=${at / 1000}`;
}
