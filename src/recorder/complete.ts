import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isRecord, jsonOf } from '../shared/json.js';
import { readFrames, type Frame } from './frames.js';
import { readJournal } from './journal.js';
import { saveListPage, type ListedReplay } from './page/list-page.js';
import { saveReplayPage, saveSingleReplayPage } from './page/replay-file.js';
import type { ReplayFacts, ReplayPictures } from './page/replay-page.js';
import { titleOf } from './page/title.js';
import {
  filesIn,
  foldersIn,
  isBeingWritten,
  type RecordingFiles,
  type SavedFiles,
} from './recording-store.js';
import { VideoFile, type Video } from './video-file.js';

/** A recording that has ended, and whose video is not written. */
export interface EndedRecording {
  readonly files: RecordingFiles;
  readonly file: VideoFile;
  /** In milliseconds. */
  readonly length: number;
  readonly framesPerSecond: number;
  readonly isSingle: boolean;
  /** What the page shows beside the video. */
  readonly facts: Omit<ReplayFacts, 'state' | 'video' | 'pictures'>;
}

/** What became of a recording. */
export interface Completed {
  readonly video?: Video | undefined;
  readonly pictures?: ReplayPictures | undefined;
  /** Why there is no video. */
  readonly failure?: string | undefined;
}

/** Writes videos. Resolves to undefined without frames. */
export interface Encoder {
  write(source: VideoSource): Promise<Video | undefined>;
}

export interface VideoSource {
  /** Path of the file with the frames. */
  readonly frames: string;
  readonly file: VideoFile;
  /** In milliseconds. */
  readonly length: number;
  readonly framesPerSecond: number;
}

/** Pictures of a replay without a video. Of more, some are left out. */
const MOST_PICTURES = 3_000;

/** Writes the video, or the pictures where nothing can encode a video, and the page. Removes what is not needed any longer. */
export async function complete(ended: EndedRecording, encoder: Encoder | undefined): Promise<Completed> {
  const { files, file, length, framesPerSecond } = ended;
  const poster = await findPoster(files.frames);
  let done: Completed = {};
  try {
    // Without frames, no encoder need start.
    const video = poster && (await encoder?.write({ frames: files.frames, file, length, framesPerSecond }));
    done = { video };
  } catch (error) {
    done = { failure: (error as Error).message };
  }
  if (!done.video) await file.discard().catch(() => {});
  try {
    if (poster && !done.video && files.saved)
      done = { ...done, pictures: await writePictures(files.frames, files.saved, length) };
    if (poster && (done.video || done.pictures)) await writeFile(files.poster, poster, { mode: 0o600 });
    if (files.saved) await save(ended, done, files.saved);
  } catch (error) {
    done = { failure: (error as Error).message, ...done };
  }
  await rm(files.frames, { force: true }).catch(() => {});
  return done;
}

/** The folders of recordings that killed processes have left, in a folder, or the folder itself. Rejects if it can't be read. */
export function findUnfinished(folder: string): string[] {
  const path = resolve(folder);
  const isRecording = foldersIn(dirname(path)).includes(path);
  const all = isRecording ? [path] : foldersIn(path);
  return all.filter((one) => !existsSync(filesIn(one).saved.facts) && !isBeingWritten(one));
}

/** Completes a recording whose process has ended, or left that to another one. Rejects if the folder is no recording. */
export async function completeFolder(folder: string, encoder: Encoder | undefined): Promise<Completed> {
  const files = filesIn(folder);
  const journal = await readJournal(files.saved.journal);
  if (!journal) throw new Error(`${folder} is not the folder of a recording.`);
  const { head, timeline, masked, end } = journal;
  const length = end?.length ?? (await lastMomentOf(files.frames, timeline.at(-1)?.at ?? 0));
  const { replayId, session, startedAt, framesPerSecond, isSingle } = head;
  const finishedAt = new Date(Date.parse(startedAt) + length).toISOString();
  const { leaseId: _leaseId, ...shown } = session;
  const failure = end ? undefined : INTERRUPTED;
  const { result } = end ?? {};
  const facts = { ...shown, replayId, startedAt, finishedAt, timeline, failure, result, masked };
  const file = new VideoFile(files.video, () => {}, true);
  return complete({ files, file, length, framesPerSecond, isSingle, facts }, encoder);
}

const INTERRUPTED = 'The process that recorded ended before the recording did.';

/** The frame with the most bytes shows the most: the first one is often an empty page. */
async function findPoster(path: string): Promise<Buffer | undefined> {
  let poster: Buffer | undefined;
  for await (const { jpeg } of framesIn(path)) if (jpeg.length > (poster?.length ?? 0)) poster = jpeg;
  return poster;
}

async function lastMomentOf(frames: string, atLeast: number): Promise<number> {
  let last = atLeast;
  for await (const { at } of framesIn(frames)) last = Math.max(last, at);
  return last;
}

/** The frames of a file, which a recording that failed early does not have. */
async function* framesIn(path: string): AsyncGenerator<Frame> {
  try {
    yield* readFrames(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** The pictures of a replay without a video, evenly chosen if there are too many. */
async function* picturesIn(path: string): AsyncGenerator<Frame> {
  let count = 0;
  for await (const { jpeg } of framesIn(path)) if (jpeg.length > 0) count++;
  const step = Math.max(1, Math.ceil(count / MOST_PICTURES));
  let index = 0;
  for await (const frame of framesIn(path)) if (index++ % step === 0) yield frame;
}

async function writePictures(path: string, saved: SavedFiles, length: number): Promise<ReplayPictures> {
  await mkdir(saved.pictures, { recursive: true, mode: 0o700 });
  const frames: { at: number; source: string }[] = [];
  for await (const { at, jpeg } of picturesIn(path)) {
    const name = `${String(frames.length + 1).padStart(6, '0')}.jpg`;
    await writeFile(join(saved.pictures, name), jpeg, { mode: 0o600 });
    frames.push({ at, source: `${basename(saved.pictures)}/${name}` });
  }
  return { length, frames };
}

/** Writes the page, then the facts, with which the recording is complete, and the list of all recordings of the folder. */
async function save(ended: EndedRecording, done: Completed, saved: SavedFiles): Promise<void> {
  const { files, length } = ended;
  const { video, pictures, failure = ended.facts.failure } = done;
  const { path: _path, ...shown } = video ?? { path: '' };
  const state = video || pictures ? 'ready' : 'none';
  const seen = video && (shown as ReplayFacts['video']);
  const facts = { ...ended.facts, failure, state, video: seen, pictures } as const;
  const names = { video: basename(files.video), poster: basename(files.poster) };
  if (ended.isSingle && state === 'ready') await saveSingle(ended, facts, saved);
  else await saveReplayPage(saved.page, { ...facts, files: names });
  const { timeline, pictures: _pictures, ...kept } = facts;
  const failures = timeline.filter(({ kind }) => kind === 'failed');
  const failed = [...new Set(failures.flatMap(({ status }) => status ?? []))].slice(0, MOST_FAILED);
  const listing = { title: titleOf(facts), length, failedAt: failures[0]?.at, failed };
  await replaceFile(saved.facts, JSON.stringify({ ...kept, ...listing }));
  await saveList(dirname(saved.folder));
}

/** Names of tests and inputs that failed, in the list of recordings. */
const MOST_FAILED = 10;

/** Puts all into the page, and removes what it contains. */
async function saveSingle({ files, length }: EndedRecording, facts: ReplayFacts, saved: SavedFiles) {
  const { video, poster, frames } = files;
  const pictures = facts.video ? undefined : { length, frames: picturesIn(frames) };
  await saveSingleReplayPage(saved.page, facts, { video: facts.video && video, poster, pictures });
  const embedded = [video, poster, saved.pictures];
  for (const path of embedded) await rm(path, { recursive: true, force: true });
}

/** Writes the list of the recordings of a folder that are complete. */
async function saveList(folder: string): Promise<void> {
  const items: ListedReplay[] = [];
  for (const path of foldersIn(folder)) {
    const kept = jsonOf(await readFile(filesIn(path).saved.facts, 'utf8').catch(() => ''));
    const item = isRecord(kept) && listed(kept, basename(path));
    if (item) items.push(item);
  }
  await saveListPage(join(folder, LIST), items);
}

/** Returns undefined for a file that this library did not write. */
function listed(kept: Record<string, unknown>, folder: string): ListedReplay | undefined {
  const { title, length, failedAt, failed, state, result } = kept;
  const isKnown =
    (state === 'ready' || state === 'none') && [undefined, 'succeeded', 'failed'].includes(result as never);
  if (!isKnown || typeof title !== 'string' || typeof kept['startedAt'] !== 'string') return undefined;
  const time = (value: unknown) => (typeof value === 'number' ? value : undefined);
  const names = Array.isArray(failed) ? failed.map(String) : [];
  return {
    folder,
    title,
    length: time(length),
    failedAt: time(failedAt),
    failed: names,
    facts: kept as never,
  };
}

/** Name of the list of recordings in their folder. */
const LIST = 'replays.html';

/** A reader never reads half of a file. */
async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.part`, text, { mode: 0o600 });
  await rename(`${path}.part`, path);
}
