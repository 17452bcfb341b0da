import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, copyFile, link, mkdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { raceTimeout } from '../shared/abort.js';
import { duration, InvalidOptionError } from '../shared/errors.js';

/** Other users of the machine must not read what a page showed. */
export const PRIVATE = 0o600;

/** Time for the disk to create a folder, in ms. */
const FOLDER_TIMEOUT = 10_000;

/**
 * Creates the folder of an option.
 *
 * @param option Its name, for the error.
 * @throws InvalidOptionError if no file can be written there.
 */
export async function prepareFolder(folder: string, option: string): Promise<void> {
  const prepare = async () => {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK | constants.X_OK);
  };
  const late = () => new Error(`the disk did not respond within ${duration(FOLDER_TIMEOUT)}`);
  try {
    await raceTimeout(FOLDER_TIMEOUT, prepare, late);
  } catch (cause) {
    const message = `${option} ${folder} can't be written: ${(cause as Error).message}.`;
    throw new InvalidOptionError(option, message, { cause });
  }
}

/** Longest file name of all usual file systems, in bytes of UTF-8. */
const LONGEST_NAME = 255;
/** Longest part after a dot that counts as the ending, in bytes. */
const LONGEST_ENDING = 100;
/** Windows opens a device under such a name, with any ending. */
const DEVICE = /^(con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³])(?=\s*(\.|$))/i;

/**
 * Moves or copies a file into a folder, under a name from outside as far as it is safe. Never replaces another file, also of
 * another process.
 *
 * @param mustStay The file must also stay where it is.
 * @returns The new path, and the size in bytes.
 */
export async function placeFile(
  from: string,
  folder: string,
  { name, mustStay }: { name: string; mustStay: boolean },
): Promise<{ path: string; size: number }> {
  await mkdir(folder, { recursive: true });
  const { stem, ending } = safeFileName(name);
  for (let suffix = ''; ; suffix = `-${randomUUID().slice(0, 6)}`) {
    const bytesLeft = LONGEST_NAME - Buffer.byteLength(suffix + ending);
    const path = join(resolve(folder), cutMiddle(stem, bytesLeft) + suffix + ending);
    try {
      // Not a link: whoever shares the file could change it.
      if (mustStay) await copyFile(from, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      else await link(from, path).catch(() => copyFile(from, path, constants.COPYFILE_EXCL));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      await rm(path, { force: true });
      throw error;
    }
    await chmod(path, PRIVATE);
    if (!mustStay) await rm(from, { force: true });
    return { path, size: (await stat(path)).size };
  }
}

/** Keeps the characters that have no meaning in a path, at a terminal or for a shell that lists the folder. */
function safeFileName(name: string): { stem: string; ending: string } {
  const safe = name.replaceAll(/[^\p{L}\p{M}\p{N} ._()+@=,-]+/gu, '-').replaceAll(/^[\s.-]+|[\s.-]+$/g, '');
  const [, before = '', ending = ''] = /^(.*?)((?:\.tar)?\.[^.]*)?$/iu.exec(safe)!;
  const isEnding = Buffer.byteLength(ending) <= LONGEST_ENDING;
  const stem = (isEnding ? before : safe).trim() || 'download';
  return { stem: stem.replace(DEVICE, '$1-'), ending: isEnding ? ending : '' };
}

const CUT = '...';

/** Cuts the middle out of a name that is too long: its beginning and its end differ most from those of other names. */
function cutMiddle(name: string, mostBytes: number): string {
  if (Buffer.byteLength(name) <= mostBytes) return name;
  const half = Math.floor((mostBytes - CUT.length) / 2);
  // A mark belongs to the character before it.
  const end = beginningOf(Array.from(name).toReversed(), half)
    .toReversed()
    .join('')
    .replace(/^\p{M}+/u, '');
  return beginningOf(Array.from(name), half).join('').trimEnd() + CUT + end.trimStart();
}

function beginningOf(characters: readonly string[], mostBytes: number): readonly string[] {
  let bytes = 0;
  const end = characters.findIndex((character) => (bytes += Buffer.byteLength(character)) > mostBytes);
  return characters.slice(0, end);
}
