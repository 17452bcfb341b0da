import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeProcessEnds } from '../../shared/process-end.js';
import type { CheckedOptions } from '../options.js';
import type { Recording } from './recording.js';
import { RecordingsFolder, type RecordingFiles } from './recordings-folder.js';

/** All recordings, the oldest first, and their files. Finished recordings are removed when they exceed the limits. */
export class RecordingStore {
  readonly #limits: CheckedOptions['recording'];
  readonly #recordings: Recording[] = [];
  /** Missing if the recordings end with the pool. */
  readonly #folder: RecordingsFolder | undefined;
  #temporaryFolder: string | undefined;
  #unguard: (() => void) | undefined;

  constructor(limits: CheckedOptions['recording']) {
    this.#limits = limits;
    this.#folder = limits.folder === undefined ? undefined : new RecordingsFolder(limits.folder);
  }

  /** Chooses the files of a recording. @throws if the folder of the options cannot be written. */
  createFiles(recording: Recording): RecordingFiles {
    const at = (ending: string) => join(this.#temporary, `${recording.replayId}.${ending}`);
    const files = this.#folder?.create(recording) ?? { poster: at('jpg'), video: at('webm') };
    return { ...files, frames: at('frames') };
  }

  add(recording: Recording): void {
    this.#recordings.push(recording);
  }

  list(sessionId?: string): readonly Recording[] {
    return this.#recordings.filter((one) => sessionId === undefined || one.sessionId === sessionId);
  }

  /** Whether a recording may write more bytes. Removes the oldest finished recordings to make room. */
  hasRoom({ frameBytes }: Recording, bytes: number): boolean {
    const { maxBytes, maxTotalBytes } = this.#limits;
    if (frameBytes + bytes > maxBytes) return false;
    while (this.#bytes + bytes > maxTotalBytes) if (!this.#removeOldest()) return false;
    return true;
  }

  /** Removes the oldest finished recordings above the limit `keep`. */
  prune(): void {
    const count = () => this.#recordings.filter(isFinished).length + this.#earlier.length;
    while (count() > this.#limits.keep) this.#removeOldest();
  }

  remove(recording: Recording): void {
    const index = this.#recordings.indexOf(recording);
    if (index !== -1) this.#recordings.splice(index, 1);
    const { page, poster, video } = recording.files;
    const paths = page === undefined ? [poster, video] : [dirname(page)];
    for (const path of paths) rm(path, { recursive: true, force: true }).catch(() => {});
  }

  /** Removes the temporary folder. Recordings in the folder of the options stay. */
  async close(): Promise<void> {
    if (this.#temporaryFolder !== undefined)
      await rm(this.#temporaryFolder, { recursive: true, force: true });
    this.#unguard?.();
  }

  get #earlier(): RecordingsFolder['earlier'] {
    return this.#folder?.earlier ?? [];
  }

  get #bytes(): number {
    return [...this.#recordings, ...this.#earlier].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #removeOldest(): boolean {
    if (this.#earlier.length > 0) {
      this.#folder!.removeOldest();
      return true;
    }
    const oldest = this.#recordings.find(isFinished);
    if (oldest) this.remove(oldest);
    return oldest !== undefined;
  }

  /** A temporary folder, created at the first use, that only this user can read. */
  get #temporary(): string {
    if (this.#temporaryFolder !== undefined) return this.#temporaryFolder;
    const path = mkdtempSync(join(tmpdir(), 'pooled-browser-replays-'));
    this.#unguard = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
    return (this.#temporaryFolder = path);
  }
}

function isFinished({ finishedAt }: Recording): boolean {
  return finishedAt !== undefined;
}
