import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeProcessEnds } from '../../shared/process-end.js';
import type { CheckedOptions } from '../options.js';
import type { Recording } from './recording.js';

/** All recordings, the oldest first, and their files. Finished recordings are removed when they exceed the limits. */
export class RecordingStore {
  readonly #limits: CheckedOptions['recording'];
  readonly #recordings: Recording[] = [];
  #temporaryFolder: string | undefined;
  #unguard: (() => void) | undefined;

  constructor(limits: CheckedOptions['recording']) {
    this.#limits = limits;
  }

  /** Path of the frames of a recording, until its video is written. */
  framesPath(replayId: string): string {
    return join(this.#folder, `${replayId}.frames`);
  }

  /** Path of the picture for the time before the video plays. */
  posterPath(replayId: string): string {
    return join(this.#folder, `${replayId}.jpg`);
  }

  videoPath(replayId: string): string {
    return join(this.#limits.folder ?? this.#folder, `${replayId}.webm`);
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
    while (this.#recordings.filter(isFinished).length > this.#limits.keep) this.#removeOldest();
  }

  remove(recording: Recording): void {
    const index = this.#recordings.indexOf(recording);
    if (index !== -1) this.#recordings.splice(index, 1);
    if (!recording.video) return;
    const paths = [recording.video.path];
    // Without the temporary folder there is no poster.
    if (this.#temporaryFolder !== undefined) paths.push(this.posterPath(recording.replayId));
    for (const path of paths) rm(path, { force: true }).catch(() => {});
  }

  /** Removes the temporary folder. Videos in the folder of the options stay. */
  async close(): Promise<void> {
    if (this.#temporaryFolder !== undefined)
      await rm(this.#temporaryFolder, { recursive: true, force: true });
    this.#unguard?.();
  }

  get #bytes(): number {
    return this.#recordings.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #removeOldest(): boolean {
    const oldest = this.#recordings.find(isFinished);
    if (oldest) this.remove(oldest);
    return oldest !== undefined;
  }

  /** A temporary folder, created at the first use, that only this user can read. */
  get #folder(): string {
    if (this.#temporaryFolder !== undefined) return this.#temporaryFolder;
    const path = mkdtempSync(join(tmpdir(), 'pooled-browser-replays-'));
    this.#unguard = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
    return (this.#temporaryFolder = path);
  }
}

function isFinished({ finishedAt }: Recording): boolean {
  return finishedAt !== undefined;
}
