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

/** Longest part of a file name in characters, each of which may take four of the 255 bytes. */
const SHORT_STEM = /^.{0,40}/u;
const SHORT_ENDING = /^.{0,10}/u;
/** Windows opens a device under such a name, with any ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/i;

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
    const path = join(resolve(folder), `${stem}${suffix}${ending}`);
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
  const [, stem = '', ending = ''] = /^(.*?)(\.[^.]*)?$/u.exec(safe)!;
  const short = SHORT_STEM.exec(stem)![0].trim() || 'download';
  return {
    stem: DEVICE.test(short) ? `${short}-` : short,
    ending: SHORT_ENDING.exec(ending)![0],
  };
}
