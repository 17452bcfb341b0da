import { createWriteStream, type WriteStream } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';

/** One picture of a page. */
export interface Frame {
  /** Milliseconds since the recording started. */
  readonly at: number;
  readonly jpeg: Buffer;
}

/** Bytes of the header of a frame in the file: its time (8) and its size (4). */
const HEADER = 12;

/** Bytes that may wait for a slow disk. Above that, frames are dropped. */
const MAX_WAITING = 16 * 1024 * 1024;

/** The frames of a recording in one file, so that no frame stays in memory. */
export class FrameFile {
  readonly path: string;
  readonly #file: WriteStream;
  readonly #closed: Promise<void>;
  #bytes = 0;
  #failed = false;

  /** @param onFailure Called once when the file cannot be written. The frames written until then stay readable. */
  constructor(path: string, onFailure: (error: Error) => void) {
    this.path = path;
    this.#file = createWriteStream(path, { mode: 0o600 });
    this.#closed = new Promise((resolve) => this.#file.once('close', resolve));
    this.#file.once('error', (error) => {
      this.#failed = true;
      onFailure(error);
    });
  }

  get bytes(): number {
    return this.#bytes;
  }

  append({ at, jpeg }: Frame): void {
    if (this.#failed || this.#file.writableEnded || this.#file.writableLength > MAX_WAITING) return;
    const header = Buffer.alloc(HEADER);
    header.writeDoubleLE(at, 0);
    header.writeUInt32LE(jpeg.length, 8);
    this.#file.write(header);
    this.#file.write(jpeg);
    this.#bytes += HEADER + jpeg.length;
  }

  /** Resolves when the file is complete and closed. */
  async end(): Promise<void> {
    if (!this.#failed) this.#file.end();
    await this.#closed;
  }

  async remove(): Promise<void> {
    await rm(this.path, { force: true });
  }
}

/** Reads the frames of a file one at a time. Skips a last frame that is incomplete because the disk was full. */
export async function* readFrames(path: string): AsyncGenerator<Frame> {
  const file = await open(path);
  try {
    for (let position = 0; ;) {
      const header = await read(file, position, HEADER);
      const size = header?.readUInt32LE(8) ?? 0;
      const jpeg = header && (await read(file, position + HEADER, size));
      if (!jpeg) return;
      yield { at: header.readDoubleLE(0), jpeg };
      position += HEADER + size;
    }
  } finally {
    await file.close();
  }
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer | undefined> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  return bytesRead === length ? buffer : undefined;
}

export interface TimedFrame extends Frame {
  /** Milliseconds until the next frame, or until the end of the video. */
  readonly duration: number;
  /** Key frames are complete pictures, to which players can seek. */
  readonly isKey: boolean;
}

/** Milliseconds after which a frame is repeated: a player seeks to near frames, and ends at once where no further frame comes. */
const MAX_DURATION = 2_000;

/** Milliseconds between key frames while the page changes. */
const KEY_INTERVAL = 5_000;

/** Milliseconds between key frames while the page does not change. With `KEY_INTERVAL`, an hour takes 44 MB instead of 2. */
const STILL_KEY_INTERVAL = 300_000;

/** Spreads frames over the length of a video: each frame stays until the next one, the last one until the end. */
export async function* layOutFrames(
  frames: AsyncIterable<Frame>,
  length: number,
): AsyncGenerator<TimedFrame> {
  let current: Frame | undefined;
  let lastKey = -Infinity;
  function* holdUntil(end: number): Generator<TimedFrame> {
    if (!current) return;
    for (let { at } = current; at < end; at += MAX_DURATION) {
      const isKey = at - lastKey >= (at === current.at ? KEY_INTERVAL : STILL_KEY_INTERVAL);
      if (isKey) lastKey = at;
      yield { at, jpeg: current.jpeg, duration: Math.min(MAX_DURATION, end - at), isKey };
    }
  }
  for await (const frame of frames) {
    if (current) yield* holdUntil(frame.at);
    current = current ? frame : { at: 0, jpeg: frame.jpeg };
  }
  yield* holdUntil(length);
}
