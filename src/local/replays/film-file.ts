import { rmSync, writeFileSync } from 'node:fs';
import { appendFile, open, rename, rm, type FileHandle } from 'node:fs/promises';
import type { StreamTargetChunk } from 'mediabunny';
import { beforeProcessEnds } from '../../shared/process-end.js';

/** By how much the room of a film is enlarged at a time: so much more than is needed is always there. */
const STEP = Buffer.alloc(512 * 1024);

/**
 * The file of a film. Its room on the disk is taken while frames come, by zeros that the film is written over when the
 * recording has ended: so there is a film of all that was recorded when something has filled the disk meanwhile.
 */
export class FilmFile {
  readonly path: string;
  /** Its name until the film is whole. */
  readonly #part: string;
  readonly #onFailure: (error: Error) => void;
  readonly #unguard: () => void;
  #room = STEP.length;
  #needed = 0;
  #growing: Promise<void> | undefined;

  /**
   * @param onFailure Called once when the disk takes no more: there is room for a little more than was asked for before.
   * @throws when there is no room to begin with.
   */
  constructor(path: string, onFailure: (error: Error) => void) {
    this.path = path;
    this.#part = `${path}.part`;
    this.#onFailure = onFailure;
    this.#unguard = beforeProcessEnds({ atExit: () => rmSync(this.#part, { force: true }) });
    try {
      writeFileSync(this.#part, STEP);
    } catch (error) {
      rmSync(this.#part, { force: true });
      this.#unguard();
      throw error;
    }
  }

  /** Bytes on the disk. */
  get room(): number {
    return this.#room;
  }

  /** Sees to it that the film can have so many bytes. */
  keepRoom(bytes: number): void {
    this.#needed = bytes + STEP.length;
    if (this.#room < this.#needed) this.#growing ??= this.#grow();
  }

  /** Writes the film with what `write` puts into the stream; resolves to its size. May be called again after a failure. */
  async fill(write: (stream: WritableStream<StreamTargetChunk>) => Promise<void>): Promise<number> {
    await this.#growing;
    const file = await open(this.#part, 'r+');
    let size = 0;
    try {
      const sink = async ({ data, position }: StreamTargetChunk) => {
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

  /** Gives the room back: there is no film. */
  async discard(): Promise<void> {
    await this.#growing;
    await rm(this.#part, { force: true });
    this.#unguard();
  }

  /** After a failure it is never called again: `#growing` stays. */
  async #grow(): Promise<void> {
    try {
      for (; this.#room < this.#needed; this.#room += STEP.length) await appendFile(this.#part, STEP);
      this.#growing = undefined;
    } catch (error) {
      this.#onFailure(error as Error);
    }
  }
}

/** A disk that fills up takes a part of what it is given, and says so with the next write. */
async function writeAll(file: FileHandle, data: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < data.length;)
    done += (await file.write(data, done, data.length - done, position + done)).bytesWritten;
}
