import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { beforeProcessEnds } from '../shared/process-end.js';
import { makeTemporaryFolder } from '../shared/temporary-folder.js';

/** Limits of recordings, and their folder. */
export interface RecordingLimits {
  /** Folder in which the recordings stay. Undefined: a temporary folder. */
  readonly folder?: string | undefined;
  /** Bytes of frames after which a recording ends. */
  readonly maxBytes: number;
  /** Bytes of all recordings. */
  readonly maxTotalBytes: number;
  /** Number of finished recordings to keep. */
  readonly keep: number;
}

/** What the store needs of a recording. */
export interface StoredRecording {
  readonly replayId: string;
  readonly startedAt: Date;
  readonly session: { readonly leaseName?: string | undefined };
  readonly files: RecordingFiles;
  readonly bytes: number;
  readonly frameBytes: number;
  readonly finishedAt?: Date;
}

export interface RecordingFiles {
  /** The frames, until the video is written. */
  readonly frames: string;
  /** The picture for the time before the video plays. */
  readonly poster: string;
  readonly video: string;
  /** The page that shows the recording without the local pool; missing in a temporary folder. */
  readonly page?: string;
}

/** A recording of an earlier process, or of another one, in the folder of the options. */
interface Earlier {
  readonly path: string;
  readonly bytes: number;
}

/** All recordings, the oldest first, and their files. Finished recordings are removed when they exceed the limits. */
export class RecordingStore<Recording extends StoredRecording> {
  readonly #limits: RecordingLimits;
  readonly #folder: string | undefined;
  readonly #recordings: Recording[] = [];
  /** The oldest first. Undefined until this process records into the folder of the options. */
  #earlier: Earlier[] | undefined;
  #temporaryFolder: string | undefined;
  #unguard: (() => void) | undefined;

  constructor(limits: RecordingLimits) {
    this.#limits = limits;
    this.#folder = limits.folder === undefined ? undefined : resolve(limits.folder);
  }

  /** Chooses the files of a recording. @throws if the folder of the options cannot be written. */
  createFiles(recording: Pick<Recording, 'replayId' | 'startedAt' | 'session'>): RecordingFiles {
    const folder = this.#folder;
    const at = (ending: string) => join(this.#temporary, `${recording.replayId}.${ending}`);
    const frames = at('frames');
    if (folder === undefined) return { frames, poster: at('jpg'), video: at('webm') };
    this.#earlier ??= openFolder(folder);
    const own = join(folder, nameOf(recording));
    mkdirSync(own, { mode: 0o700 });
    return {
      frames,
      page: join(own, 'index.html'),
      video: join(own, 'video.webm'),
      poster: join(own, 'poster.jpg'),
    };
  }

  add(recording: Recording): void {
    this.#recordings.push(recording);
  }

  get list(): readonly Recording[] {
    return this.#recordings;
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
    const count = () => this.#recordings.filter(isFinished).length + (this.#earlier?.length ?? 0);
    while (count() > this.#limits.keep) this.#removeOldest();
  }

  remove(recording: Recording): void {
    const index = this.#recordings.indexOf(recording);
    if (index !== -1) this.#recordings.splice(index, 1);
    this.removeFiles(recording.files);
  }

  removeFiles({ page, poster, video }: RecordingFiles): void {
    const paths = page === undefined ? [poster, video] : [dirname(page)];
    for (const path of paths) rm(path, { recursive: true, force: true }).catch(() => {});
  }

  /** Removes the temporary folder. Recordings in the folder of the options stay. */
  async close(): Promise<void> {
    if (this.#temporaryFolder !== undefined)
      await rm(this.#temporaryFolder, { recursive: true, force: true });
    this.#unguard?.();
  }

  get #bytes(): number {
    return [...this.#recordings, ...(this.#earlier ?? [])].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #removeOldest(): boolean {
    const earlier = this.#earlier?.shift();
    const oldest = earlier ? undefined : this.#recordings.find(isFinished);
    if (earlier) rmSync(earlier.path, { recursive: true, force: true });
    if (oldest) this.remove(oldest);
    return (earlier ?? oldest) !== undefined;
  }

  /** A temporary folder, created at the first use, that only this user can read. */
  get #temporary(): string {
    if (this.#temporaryFolder !== undefined) return this.#temporaryFolder;
    const path = makeTemporaryFolder('replays');
    this.#unguard = beforeProcessEnds({ atExit: () => rmSync(path, { recursive: true, force: true }) });
    return (this.#temporaryFolder = path);
  }
}

function isFinished({ finishedAt }: StoredRecording): boolean {
  return finishedAt !== undefined;
}

/** Creates the folder of the options, and lists its recordings. */
function openFolder(path: string): Earlier[] {
  const isNew = mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined;
  // Videos are large, and can show what no repository must contain.
  if (isNew) writeFileSync(join(path, '.gitignore'), '*\n');
  const names = readdirSync(path).filter((name) => NAME.test(name));
  const paths = names.toSorted().map((name) => join(path, name));
  return paths.map((path) => ({ path, bytes: sizeOf(path) }));
}

/** The name of the folder of a recording. It begins with the date, so that the names are in the order of time. */
const NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[\w.-]*[0-9a-f]{8}$/;

/** Characters of the name of a lease in the name of a folder. */
const LONGEST_NAME = 60;

function nameOf({
  replayId,
  startedAt,
  session: { leaseName },
}: Pick<StoredRecording, 'replayId' | 'startedAt' | 'session'>): string {
  const time = startedAt.toISOString().replace(/\..*/, 'Z').replaceAll(':', '-');
  const lease = leaseName === undefined ? [] : [leaseName.slice(0, LONGEST_NAME)];
  return [time, ...lease, replayId.slice(0, 8)].join('-');
}

/** Bytes of the files in a folder, which another process can remove meanwhile. */
function sizeOf(folder: string): number {
  try {
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}
