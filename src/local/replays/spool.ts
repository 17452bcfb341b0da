import { createWriteStream, type WriteStream } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import type { Frame } from './frame.js';

/** Time and size of a frame, before its bytes. */
const HEADER = 12;

/** Bytes that may wait for a slow disk; further frames are dropped then. */
const MOST_WAITING = 16 * 1024 * 1024;

/** Frames on their way to a film: one file, to which each is appended as it comes. Memory holds none of them. */
export class Spool {
  readonly path: string;
  readonly #file: WriteStream;
  readonly #closed: Promise<void>;
  #bytes = 0;
  #failed = false;

  /** @param onFailure Called once when the file can't be written: what was written until then can be read. */
  constructor(path: string, onFailure: (error: Error) => void) {
    this.path = path;
    this.#file = createWriteStream(path, { mode: 0o600 });
    this.#closed = new Promise((resolve) => this.#file.once('close', resolve));
    this.#file.once('error', (error) => {
      this.#failed = true;
      onFailure(error);
    });
  }

  /** Bytes appended. */
  get bytes(): number {
    return this.#bytes;
  }

  append({ at, jpeg }: Frame): void {
    if (this.#failed || this.#file.writableEnded || this.#file.writableLength > MOST_WAITING) return;
    const header = Buffer.alloc(HEADER);
    header.writeDoubleLE(at, 0);
    header.writeUInt32LE(jpeg.length, 8);
    this.#file.write(header);
    this.#file.write(jpeg);
    this.#bytes += HEADER + jpeg.length;
  }

  /** Resolves when everything is on disk that will be. */
  async end(): Promise<void> {
    if (!this.#failed) this.#file.end();
    await this.#closed;
  }

  async remove(): Promise<void> {
    await rm(this.path, { force: true });
  }
}

/** The frames of a spool, one at a time. One that was cut off by a full disk is left out. */
export async function* readFrames(path: string): AsyncGenerator<Frame> {
  const file = await open(path);
  try {
    for (let place = 0; ;) {
      const header = await read(file, place, HEADER);
      const size = header?.readUInt32LE(8) ?? 0;
      const jpeg = header && (await read(file, place + HEADER, size));
      if (!jpeg) return;
      yield { at: header.readDoubleLE(0), jpeg };
      place += HEADER + size;
    }
  } finally {
    await file.close();
  }
}

async function read(file: FileHandle, position: number, length: number): Promise<Buffer | undefined> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  return bytesRead === length ? buffer : undefined;
}
