import type { CdpSource } from '../wire/cdp-source.js';
import { ChromiumEncoder, type EncodedChunk } from './chromium-encoder.js';
import type { Encoder, VideoSource } from './complete.js';
import { layOutFrames, readFrames, type TimedFrame } from './frames.js';
import type { Video } from './video-file.js';
import { createAbort } from '../shared/globals.js';
import { clock } from '../shared/clock.js';

/** Milliseconds without work after which the Chromium process ends. */
const IDLE = 10_000;

/** All browsers play VP9 in WebM, and every Chromium encodes it, also builds without licensed codecs. */
const VIDEO_TYPE = 'video/webm';

/** A Chromium that encodes. */
export interface EncodingBrowser {
  /** Opens clients of it. */
  readonly source: CdpSource;
  /** Ends the browser; missing for one that continues. */
  kill?(): Promise<void>;
}

/** The Chromium that encodes, and its page. */
interface Encoding {
  readonly chromium: Promise<EncodingBrowser>;
  readonly encoder: Promise<ChromiumEncoder>;
}

/**
 * Writes videos, one after another, with the encoder of a Chromium process. The process is not part of any pool, and
 * runs only while videos are expected or written.
 */
export class VideoWriter implements Encoder {
  readonly #launch: (signal: AbortSignal) => Promise<EncodingBrowser>;
  readonly #closing = createAbort();
  readonly #ends = new Set<Promise<void>>();
  #last: Promise<unknown> = Promise.resolve();
  #encoding: Encoding | undefined;
  /** Videos that are expected or being written. */
  #due = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(launch: (signal: AbortSignal) => Promise<EncodingBrowser>) {
    this.#launch = launch;
  }

  /**
   * Starts Chromium for a video that is written later: its start is most of the time that a short video needs.
   *
   * @returns A function to call when the video is written, or is not expected any more.
   */
  expect(): () => void {
    this.#due++;
    clock.clearTimeout(this.#idle);
    // `write` reports a failure.
    this.#start().encoder.catch(() => {});
    return () => {
      if (--this.#due > 0 || this.#closing.signal.aborted) return;
      this.#idle = clock.setTimeout(() => this.#end(), IDLE);
    };
  }

  /**
   * Writes a video. Repeats the attempt once after a failure, such as a crash of Chromium. @returns undefined without
   * frames.
   */
  write(source: VideoSource): Promise<Video | undefined> {
    const onWritten = this.expect();
    const video = this.#last.then(() => this.#attempt(source).catch(() => this.#attempt(source)));
    this.#last = video.catch(() => {}).finally(onWritten);
    return video;
  }

  /** Ends Chromium. Videos that are not complete fail. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('The recorder is closing.'));
    this.#end();
    await this.#last;
    this.#end();
    await Promise.all(this.#ends);
  }

  async #attempt(source: VideoSource): Promise<Video | undefined> {
    this.#closing.signal.throwIfAborted();
    const { encoder } = this.#start();
    try {
      return await writeVideo(source, await encoder);
    } catch (error) {
      // The state of this Chromium is unknown: the next video gets a new one.
      this.#end();
      throw error;
    }
  }

  #start(): Encoding {
    if (this.#encoding) return this.#encoding;
    const chromium = this.#launch(this.#closing.signal);
    const encoder = chromium.then((started) => ChromiumEncoder.open(started.source));
    return (this.#encoding = { chromium, encoder });
  }

  #end(): void {
    clock.clearTimeout(this.#idle);
    const ended = this.#encoding && endEncoding(this.#encoding);
    this.#encoding = undefined;
    const ending = ended?.catch(() => {}).finally(() => this.#ends.delete(ending!));
    if (ending) this.#ends.add(ending);
  }
}

async function endEncoding({ chromium, encoder }: Encoding): Promise<void> {
  const browser = await chromium;
  if (browser.kill) return browser.kill();
  await (await encoder).close();
}

/** Encodes the frames and writes the video, with one frame in memory at a time. */
async function writeVideo(source: VideoSource, encoder: ChromiumEncoder): Promise<Video | undefined> {
  const { file, length, framesPerSecond } = source;
  const frames = layOutFrames(readFrames(source.frames), length);
  try {
    const first = await frames.next();
    if (first.done) return undefined;
    const picture = await encoder.begin(first.value.jpeg, framesPerSecond);
    const { writeWebm } = await import('./webm.js');
    const size = await file.fill((stream) => writeWebm(encodeAll(first.value, frames, encoder), stream));
    return { path: file.path, type: VIDEO_TYPE, size, duration: length, ...picture };
  } finally {
    // Closes the file with the frames.
    await frames.return(undefined);
  }
}

async function* encodeAll(
  first: TimedFrame,
  others: AsyncIterable<TimedFrame>,
  encoder: ChromiumEncoder,
): AsyncGenerator<EncodedChunk[]> {
  yield await encoder.encode(first);
  for await (const frame of others) yield await encoder.encode(frame);
  yield await encoder.finish();
}
