import { statSync } from 'node:fs';
import { InvalidOptionError, rejectUnknownOptions } from '../../shared/errors.js';
import type { LocalPoolRecording } from '../options.js';
import { CALLER, check, checkObject, isText } from './check.js';

/** The option `recording` with every default filled in. */
export interface CheckedRecording {
  readonly folder: string | undefined;
  readonly maxBytes: number;
  readonly maxTotalBytes: number;
  readonly keep: number;
}

const MEGABYTE = 1024 * 1024;

/** Checks the option `recording`. */
export function checkRecording(recording: LocalPoolRecording): CheckedRecording {
  checkObject(recording, 'recording');
  rejectUnknownOptions(recording, OPTIONS, `${CALLER} in recording`);
  const { folder, maxBytes = 512 * MEGABYTE, maxTotalBytes = 2048 * MEGABYTE, keep = 100 } = recording;
  check(
    folder === undefined || isFolder(folder),
    'recording.folder',
    'the path of a folder that exists',
    folder,
  );
  for (const [key, value] of Object.entries({ maxBytes, maxTotalBytes, keep }))
    check(Number.isInteger(value) && value > 0, `recording.${key}`, 'an integer above 0', value);
  if (maxTotalBytes < maxBytes) {
    const message = 'The option recording.maxTotalBytes must be recording.maxBytes at least.';
    throw new InvalidOptionError('recording.maxTotalBytes', message);
  }
  return { folder, maxBytes, maxTotalBytes, keep };
}

function isFolder(path: unknown): boolean {
  return isText(path) && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

const OPTIONS = ['folder', 'maxBytes', 'maxTotalBytes', 'keep'];
