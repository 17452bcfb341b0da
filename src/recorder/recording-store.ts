import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync, type Dirent } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { clock } from '../shared/clock.js';
import { beforeProcessEnds } from '../shared/process-end.js';
import { hasEnded } from '../shared/process-id.js';
import { makeTemporaryFolder } from '../shared/temporary-folder.js';
import { headOf } from './journal.js';

/** Milliseconds between two looks at the folder of the options. */
const LIST_INTERVAL = 10_000;

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
  /** Milliseconds after which a recording in the folder is removed. Default: never. */
  readonly maxAge?: number | undefined;
}

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
  /** What outlives the process; missing in a temporary folder. */
  readonly saved?: SavedFiles;
}

/** The files of a recording that outlives its process. */
export interface SavedFiles {
  readonly folder: string;
  /** The page that shows the recording without the local pool. */
  readonly page: string;
  /** The timeline, from the start of the recording. */
  readonly journal: string;
  /** The facts of a recording that is complete. */
  readonly facts: string;
  /** A folder of pictures, where nothing can encode a video. */
  readonly pictures: string;
}

/** The files in the folder of a recording. */
export function filesIn(folder: string): RecordingFiles & { readonly saved: SavedFiles } {
  const at = (name: string) => join(folder, name);
  return {
    frames: at('frames'),
    poster: at('poster.jpg'),
    video: at('video.webm'),
    saved: {
      folder,
      page: at('index.html'),
      journal: at('recording.jsonl'),
      facts: at('replay.json'),
      pictures: at('pictures'),
    },
  };
}

/** A recording of an earlier process, or of another one, in the folder of the options. */
interface Earlier {
  readonly path: string;
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

/** All recordings, the oldest first, and their files. Finished recordings are removed when they exceed the limits. */
export class RecordingStore<Recording extends StoredRecording> {
  readonly #limits: RecordingLimits;
  readonly #folder: string | undefined;
  readonly #recordings: Recording[] = [];
  /** The oldest first. Undefined until this process records into the folder of the options. */
  #earlier: Earlier[] | undefined;
  #listedUntil = 0;
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
    if (folder === undefined) return { frames: at('frames'), poster: at('jpg'), video: at('webm') };
    this.#list(folder);
    const own = join(folder, nameOf(recording));
    mkdirSync(own, { mode: 0o700 });
    return filesIn(own);
  }

  /** Other processes can record into the folder, too. */
  #list(folder: string): void {
    if (clock.now() < this.#listedUntil) return;
    this.#listedUntil = clock.now() + LIST_INTERVAL;
    const own = new Set(this.#recordings.map(({ files }) => files.saved?.folder));
    this.#earlier = openFolder(folder).filter(({ path }) => !own.has(path));
  }

  add(recording: Recording): void {
    this.#recordings.push(recording);
  }

  get list(): readonly Recording[] {
    return this.#recordings;
  }

  /** Whether a recording may write more bytes. Removes the oldest finished recordings to free space. */
  hasCapacity({ frameBytes }: Recording, bytes: number): boolean {
    const { maxBytes, maxTotalBytes } = this.#limits;
    if (frameBytes + bytes > maxBytes) return false;
    while (this.#bytes + bytes > maxTotalBytes) if (!this.#removeOldest()) return false;
    return true;
  }

  /** Removes the oldest finished recordings above the limits. */
  prune(): void {
    const { keep, maxAge = Infinity, maxTotalBytes } = this.#limits;
    const count = () => this.#recordings.filter(isFinished).length + (this.#earlier?.length ?? 0);
    const isTooOld = () => Date.now() - (this.#earlier?.[0]?.startedAt ?? Date.now()) > maxAge;
    while (count() > keep || this.#bytes > maxTotalBytes || isTooOld()) if (!this.#removeOldest()) return;
  }

  remove(recording: Recording): void {
    this.#drop(recording);
    this.removeFiles(recording.files);
  }

  /** Its files stay, as those of an earlier process. */
  forget(recording: Recording): void {
    this.#drop(recording);
    const { files, bytes, startedAt } = recording;
    if (files.saved) this.#earlier?.push({ path: files.saved.folder, bytes, startedAt: startedAt.getTime() });
  }

  #drop(recording: Recording): void {
    const index = this.#recordings.indexOf(recording);
    if (index !== -1) this.#recordings.splice(index, 1);
  }

  removeFiles({ saved, poster, video }: RecordingFiles): void {
    const paths = saved === undefined ? [poster, video] : [saved.folder];
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
  return foldersIn(path)
    .filter((one) => !isBeingWritten(one))
    .map((one) => ({ path: one, bytes: sizeOf(one), startedAt: startOf(one) }));
}

/** The folders of recordings in a folder, the oldest first. Follows no link, and skips what is not ours. */
export function foldersIn(path: string): string[] {
  const names = readdirSync(path, { withFileTypes: true }).filter((one) => one.isDirectory());
  const ours = names.map(({ name }) => name).filter((name) => NAME.test(name));
  return ours
    .toSorted()
    .map((name) => join(path, name))
    .filter((one) => isFile(filesIn(one).saved.journal));
}

/** Whether the process that records may still run. */
export function isBeingWritten(folder: string): boolean {
  const { journal, facts } = filesIn(folder).saved;
  if (isFile(facts)) return false;
  const head = headOf(journal);
  return head === undefined || hasEnded(head.process) !== true;
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function startOf(folder: string): number {
  const [, date = '', time = ''] = /^([\d-]{10})T([\d-]{8})Z/.exec(basename(folder)) ?? [];
  return Date.parse(`${date}T${time.replaceAll('-', ':')}Z`);
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
  // The name of a lease of another service can contain anything.
  const lease =
    leaseName === undefined ? [] : [leaseName.slice(0, LONGEST_NAME).replaceAll(/[^\w.-]+/g, '_')];
  return [time, ...lease, replayId.slice(0, 8)].join('-');
}

/** Bytes of the files in a folder, which another process can remove meanwhile. Follows no link. */
function sizeOf(folder: string): number {
  const sizeIn = (one: Dirent) => {
    const path = join(folder, one.name);
    return one.isDirectory() ? sizeOf(path) : lstatSync(path).size;
  };
  try {
    return readdirSync(folder, { withFileTypes: true }).reduce((sum, one) => sum + sizeIn(one), 0);
  } catch {
    return 0;
  }
}
