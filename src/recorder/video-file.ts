import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { appendFile, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { beforeProcessEnds } from '../shared/process-end.js';

/** A video on disk. Its size is in bytes, its duration in milliseconds. */
export interface Video {
  readonly path: string;
  /** MIME type, such as `video/webm`. */
  readonly type: string;
  readonly size: number;
  readonly duration: number;
  readonly width: number;
  readonly height: number;
}

/** Bytes of a file, and where they belong. */
export interface FilePart {
  readonly data: Uint8Array;
  readonly position: number;
}

/** The bytes by which the reserved disk space grows; also the minimum reserve beyond the expected size. */
const STEP = Buffer.alloc(512 * 1024);

/**
 * The file of a video. It reserves its disk space with zeros while the recording runs; the video overwrites them after
 * the recording. So there is a video of everything recorded even if the disk fills up meanwhile.
 */
export class VideoFile {
  readonly path: string;
  /** The name of the file until the video is complete. */
  readonly #part: string;
  readonly #onFailure: (error: Error) => void;
  readonly #unguard: () => void;
  #reserved = STEP.length;
  #needed = 0;
  #growing: Promise<void> | undefined;

  /**
   * @param onFailure Called once when the disk has no more space. The space reserved until then stays reserved.
   * @param outlivesProcess Another process can write the video if this one ends, or has reserved the space.
   * @throws if the disk has no space for the first reservation.
   */
  constructor(path: string, onFailure: (error: Error) => void, outlivesProcess = false) {
    this.path = path;
    this.#part = `${path}.part`;
    this.#onFailure = onFailure;
    const atExit = () => rmSync(this.#part, { force: true });
    this.#unguard = outlivesProcess ? () => {} : beforeProcessEnds({ atExit });
    try {
      if (!outlivesProcess || !existsSync(this.#part)) writeFileSync(this.#part, STEP, { mode: 0o600 });
    } catch (error) {
      rmSync(this.#part, { force: true });
      this.#unguard();
      throw error;
    }
  }

  /** Bytes reserved on the disk. */
  get reserved(): number {
    return this.#reserved;
  }

  /** Reserves space for a video of this many bytes, in the background. */
  reserve(bytes: number): void {
    this.#needed = bytes + STEP.length;
    if (this.#reserved < this.#needed) this.#growing ??= this.#grow();
  }

  /**
   * Writes the video. May be called again after a failure.
   *
   * @param write Writes the content of the video to the stream.
   * @returns The size of the video in bytes.
   */
  async fill(write: (stream: WritableStream<FilePart>) => Promise<void>): Promise<number> {
    await this.#growing;
    const file = await open(this.#part, 'r+');
    let size = 0;
    try {
      const sink = async ({ data, position }: FilePart) => {
        await writeAll(file, data, position);
        size = Math.max(size, position + data.length);
      };
      await write(new WritableStream({ write: sink }));
      await file.truncate(size);
    } finally {
      await file.close();
    }
    await rename(this.#part, this.path);
    this.#unguard();
    return size;
  }

  /** Removes the reserved file. */
  async discard(): Promise<void> {
    await this.#growing;
    await rm(this.#part, { force: true });
    this.#unguard();
  }

  /** Keeps `#growing` set after a failure, so that it is never called again. */
  async #grow(): Promise<void> {
    try {
      for (; this.#reserved < this.#needed; this.#reserved += STEP.length) await appendFile(this.#part, STEP);
      this.#growing = undefined;
    } catch (error) {
      this.#onFailure(error as Error);
    }
  }
}

/** Repeats partial writes: on a nearly full disk, the first write takes a part and only the next one fails. */
async function writeAll(file: FileHandle, data: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < data.length;)
    done += (await file.write(data, done, data.length - done, position + done)).bytesWritten;
}

/** Measured: 1.4 bytes of video per byte of frames for changing plain colours; 0.1 to 0.2 for text and photographs. */
const MAX_PER_FRAME_BYTE = 1.5;

/** Measured: 205 bytes of video per millisecond for noise of 1280 x 720 pixels, 90 for text. */
const MAX_PER_MILLISECOND = 350;

/**
 * Estimates the maximum size of a video in bytes, with a wide margin.
 *
 * @param length Of the video, in milliseconds.
 */
export function maxVideoSize(frameBytes: number, length: number): number {
  return Math.min(frameBytes * MAX_PER_FRAME_BYTE, length * MAX_PER_MILLISECOND);
}

/** Whether a write failed because the disk or the user's quota is full. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
