import { raceEnd } from '../shared/abort.js';
import { CdpSession, type CdpClient } from '../wire/cdp-client.js';
import type { CdpSource } from '../wire/cdp-source.js';
import type { ResultOf } from '../wire/message.js';
import type { TimedFrame } from './frames.js';

/** WebCodecs needs an https page. This one is empty, and no request for it leaves the browser. */
const SECURE_PAGE = 'https://encoder.invalid/';

/** A chunk of encoded video, as Chromium's encoder emits it. Times are in microseconds. */
export interface EncodedChunk {
  /** In base64. */
  readonly data: string;
  readonly type: 'key' | 'delta';
  readonly timestamp: number;
  readonly duration: number;
  /** Present in the first chunk only. */
  readonly config?: VideoDecoderConfig;
}

/** The video encoder of a Chromium (WebCodecs), in a page that encodes one video after another. */
export class ChromiumEncoder {
  readonly #cdp: CdpClient;
  readonly #targetId: string;
  readonly #page: CdpSession;
  /** Resolves when Chromium has ended. */
  readonly #ended: Promise<unknown>;
  /** The picture on the canvas of the page. */
  #drawn: Buffer | undefined;

  private constructor(cdp: CdpClient, targetId: string, session: string) {
    this.#cdp = cdp;
    this.#targetId = targetId;
    this.#page = new CdpSession(cdp, session);
    this.#ended = cdp.ended;
  }

  static async open(source: CdpSource): Promise<ChromiumEncoder> {
    let onNavigated!: () => void;
    const navigated = new Promise<void>((resolve) => (onNavigated = resolve));
    const cdp = await source({
      'Page.frameNavigated': onNavigated,
      'Fetch.requestPaused': ({ requestId }, session) => {
        const page = { requestId, responseCode: 200, body: '' };
        cdp.send('Fetch.fulfillRequest', page, session).catch(() => {});
      },
    });
    const { ended } = cdp;
    const targetId = await unless(ended, cdp.openPage());
    const session = await unless(ended, cdp.attach(targetId));
    const encoder = new ChromiumEncoder(cdp, targetId, session);
    await encoder.#ask('Page.enable');
    await encoder.#ask('Fetch.enable');
    await encoder.#ask('Page.navigate', { url: SECURE_PAGE });
    // The script would be lost with the previous document.
    await unless(ended, navigated);
    await encoder.#evaluate(ENCODER_SCRIPT);
    return encoder;
  }

  /** Closes the page, of a Chromium that goes on. Never rejects. */
  async close(): Promise<void> {
    await Promise.race([
      this.#cdp.send('Target.closeTarget', { targetId: this.#targetId }),
      this.#ended,
    ]).catch(() => {});
    this.#cdp.close();
  }

  /** Starts a video with the size of this picture, and returns the size. */
  async begin(jpeg: Buffer, framesPerSecond: number): Promise<{ width: number; height: number }> {
    this.#drawn = undefined;
    return await this.#call('begin', jpeg.toString('base64'), framesPerSecond);
  }

  async encode({ jpeg, at, duration, isKey }: TimedFrame): Promise<EncodedChunk[]> {
    // Most frames of a still page repeat the one before.
    const picture = jpeg === this.#drawn ? undefined : jpeg.toString('base64');
    this.#drawn = jpeg;
    return await this.#call('encode', at, duration, isKey, picture);
  }

  /** Ends the video, and returns the last chunks. */
  async finish(): Promise<EncodedChunk[]> {
    return await this.#call('finish');
  }

  async #call<Result>(method: string, ...args: unknown[]): Promise<Result> {
    // Caught in the page: Chromium reports a rejection without its message.
    const caught = '.then((value) => ({ value }), (error) => ({ error: String(error) }))';
    const outcome = await this.#evaluate(`encoder.${method}(...${JSON.stringify(args)})${caught}`);
    const { value, error } = outcome as { value: Result; error?: string };
    if (error !== undefined) throw new Error(error);
    return value;
  }

  async #evaluate(expression: string): Promise<unknown> {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#ask('Runtime.evaluate', params);
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return result.value;
  }

  #ask<Method extends string>(method: Method, params?: object): Promise<ResultOf<Method>> {
    return unless(this.#ended, this.#page.ask(method, params));
  }
}

/** Fails as soon as Chromium ends. */
function unless<Value>(ended: Promise<unknown>, work: Promise<Value>): Promise<Value> {
  return raceEnd(work, ended, () => new Error('The Chromium process that encodes videos ended.'));
}

/** Maximum width and height of a video, in pixels. */
const MAX_SIDE = 1280;

/**
 * Runs in the encoder's page, therefore a string. The video has the size of its first frame; other frames are scaled
 * down to fit.
 */
const ENCODER_SCRIPT = `
globalThis.encoder = {
  async begin(jpeg, framesPerSecond) {
    const first = await this.decode(jpeg);
    const scale = Math.min(1, ${MAX_SIDE} / Math.max(first.width, first.height));
    const even = (pixels) => Math.max(2, 2 * Math.floor((pixels * scale) / 2));
    const size = { width: even(first.width), height: even(first.height) };
    this.canvas = new OffscreenCanvas(size.width, size.height);
    this.context = this.canvas.getContext('2d', { alpha: false });
    this.chunks = [];
    this.encoder = new VideoEncoder({
      output: (chunk, meta) => this.chunks.push(this.serialize(chunk, meta)),
      error: (error) => (this.error = error),
    });
    const bitrate = Math.round(size.width * size.height * 1.5);
    this.encoder.configure({ codec: 'vp09.00.41.08', ...size, bitrate, framerate: framesPerSecond, latencyMode: 'realtime' });
    return size;
  },
  async encode(at, duration, keyFrame, jpeg) {
    if (jpeg) await this.draw(jpeg);
    const frame = new VideoFrame(this.canvas, { timestamp: at * 1000, duration: duration * 1000 });
    this.encoder.encode(frame, { keyFrame });
    frame.close();
    while (this.encoder.encodeQueueSize > 2) await new Promise((resolve) => (this.encoder.ondequeue = resolve));
    return this.takeChunks();
  },
  async draw(jpeg) {
    const picture = await this.decode(jpeg);
    const { width, height } = this.canvas;
    const scale = Math.min(width / picture.width, height / picture.height, 1);
    const [scaledWidth, scaledHeight] = [picture.width * scale, picture.height * scale];
    this.context.fillRect(0, 0, width, height);
    this.context.drawImage(picture, (width - scaledWidth) / 2, (height - scaledHeight) / 2, scaledWidth, scaledHeight);
    picture.close();
  },
  async finish() {
    await this.encoder.flush();
    this.encoder.close();
    return this.takeChunks();
  },
  takeChunks() {
    if (this.error) throw this.error;
    return this.chunks.splice(0);
  },
  async decode(jpeg) {
    const text = atob(jpeg);
    // Many times faster than Uint8Array.from, which calls a function for each byte.
    const bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
    return createImageBitmap(new Blob([bytes], { type: 'image/jpeg' }));
  },
  serialize(chunk, meta) {
    const bytes = new Uint8Array(chunk.byteLength);
    chunk.copyTo(bytes);
    let text = '';
    for (let start = 0; start < bytes.length; start += 8192)
      text += String.fromCharCode(...bytes.subarray(start, start + 8192));
    const { type, timestamp, duration } = chunk;
    const { codec, codedWidth, codedHeight, colorSpace } = meta?.decoderConfig ?? {};
    const config = codec && { codec, codedWidth, codedHeight, colorSpace };
    return { data: btoa(text), type, timestamp, duration, config };
  },
};
`;
