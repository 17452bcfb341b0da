import { open, realpath, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LARGEST_MESSAGE } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';
import { namingFile } from '../shared/naming-file.js';

/** A line of a file. */
interface Line {
  /** With the line break, unless it is the last line of a file that ends without one. */
  readonly bytes: Buffer;
  /** Position in the file, in bytes. */
  readonly start: number;
  /** The line has a line break. */
  readonly isComplete: boolean;
}

export async function openFile(path: string, flags: 'r' | 'a+'): Promise<FileHandle> {
  const fail = (reason: string, cause?: unknown) =>
    new CheckpointError(`The checkpoint ${path} cannot be opened: ${reason}.`, { cause });
  const file = await open(path, flags, 0o600).catch((cause: Error) => {
    throw fail(cause.message, cause);
  });
  const facts = await file.stat();
  // A pipe can be read, but not be written and read again.
  if (facts.isFile() || (flags === 'r' && !facts.isDirectory())) return file;
  await file.close();
  throw fail('it is not a file');
}

/** Bytes that are read at once: a long file has far fewer parts than of the usual 64 KiB. */
const PART = 1024 * 1024;

/** The longest line that is written and read, in bytes. */
export const LONGEST_LINE = LARGEST_MESSAGE;

/**
 * @param expectBeginning Receives the first bytes of the file, and throws for another kind of file, before all of it is in memory.
 */
export async function* readLines(
  file: FileHandle,
  path: string,
  expectBeginning: (bytes: Buffer) => void = () => {},
): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer[] = [];
  let start = 0;
  let read = 0;
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false, highWaterMark: PART })) {
    let bytes = chunk as Buffer;
    if (read === 0) expectBeginning(bytes);
    read += bytes.length;
    for (let at = bytes.indexOf('\n'); at !== -1; at = bytes.indexOf('\n')) {
      const line = Buffer.concat([...rest, bytes.subarray(0, at + 1)]);
      yield { bytes: line, start, isComplete: true };
      start += line.length;
      rest = [];
      bytes = bytes.subarray(at + 1);
    }
    if (read - start > LONGEST_LINE) throw longLine(path, start);
    rest.push(bytes);
  }
  const bytes = Buffer.concat(rest);
  if (bytes.length > 0) yield { bytes, start, isComplete: false };
}

function longLine(path: string, start: number): CheckpointError {
  const most = LONGEST_LINE / 1024 / 1024;
  return new CheckpointError(
    `${path}: the line at byte ${start} has more than ${most} MiB, the most that an outcome may have.`,
  );
}

/**
 * Writes a file or replaces its content. If this process is killed, the file has either its old or its new content. A
 * file `<path>.new` may be left over, which the next call replaces.
 */
export async function replaceFile(path: string, content: AsyncIterable<string | Buffer>): Promise<void> {
  // A link to the file stays a link.
  const target = await realpath(path).catch(() => path);
  const temporary = `${target}.new`;
  const { mode = 0o600 } = await stat(target).catch(() => ({ mode: undefined }));
  await rm(temporary, { force: true });
  // Never follows a link that another user has created in a shared folder.
  const file = await open(temporary, 'wx', mode);
  try {
    // Flushed before it is closed.
    await namingFile(path, () => pipeline(content, file.createWriteStream({ flush: true })));
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(target));
}

/** After a power failure, the folder would still have the old file. Not all systems can sync a folder. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path).catch(() => undefined);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
