import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Recording } from './recording.js';

/** Paths of the files of a recording. */
export interface RecordingFiles {
  /** The frames, until the video is written. */
  readonly frames: string;
  /** The picture for the time before the video plays. */
  readonly poster: string;
  readonly video: string;
  /** The page that shows the recording without the local pool; missing in a temporary folder. */
  readonly page?: string;
}

/** A recording of an earlier process, or of another one. */
interface Earlier {
  readonly path: string;
  readonly bytes: number;
}

/** Begins with the date, so that the names are in the order of time. */
const NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[\w.-]*[0-9a-f]{8}$/;

/** Characters of the name of a lease in the name of a folder. */
const LONGEST_NAME = 60;

/** The folder in which recordings outlive the process, each in its own folder. It is created for the first recording. */
export class RecordingsFolder {
  readonly #path: string;
  /** The oldest first. */
  #earlier: Earlier[] | undefined;

  constructor(path: string) {
    this.#path = resolve(path);
  }

  /** The recordings of other processes, once this process records. */
  get earlier(): readonly Earlier[] {
    return this.#earlier ?? [];
  }

  /** Creates the folder of a recording. @throws if it cannot be written. */
  create({ replayId, startedAt, leaseName }: Recording): Omit<RecordingFiles, 'frames'> {
    if (!this.#earlier) this.#open();
    const time = startedAt.toISOString().replace(/\..*/, 'Z').replaceAll(':', '-');
    const parts = [time, leaseName?.slice(0, LONGEST_NAME), replayId.slice(0, 8)];
    const folder = join(this.#path, parts.filter((part) => part !== undefined).join('-'));
    mkdirSync(folder, { mode: 0o700 });
    const at = (name: string) => join(folder, name);
    return { page: at('index.html'), video: at('video.webm'), poster: at('poster.jpg') };
  }

  /** Removes the oldest recording of the other processes. */
  removeOldest(): void {
    const oldest = this.#earlier?.shift();
    if (oldest) rmSync(oldest.path, { recursive: true, force: true });
  }

  #open(): void {
    const isNew = mkdirSync(this.#path, { recursive: true, mode: 0o700 }) !== undefined;
    // Videos are large, and can show what no repository must contain.
    if (isNew) writeFileSync(join(this.#path, '.gitignore'), '*\n');
    const names = readdirSync(this.#path).filter((name) => NAME.test(name));
    this.#earlier = names.toSorted().map((name) => {
      const path = join(this.#path, name);
      return { path, bytes: sizeOf(path) };
    });
  }
}

/** Bytes of the files in a folder, which another process can remove meanwhile. */
function sizeOf(folder: string): number {
  try {
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}
