import { access, constants, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CliError, EXIT } from './errors.js';
import { writeCsv } from './map-csv.js';
import type { MapReport } from './map-report.js';

/** Options about the file of the results. */
export interface OutOptions {
  out?: string;
  format: 'jsonl' | 'csv';
  resume?: true;
  force?: true;
}

/** The file that stores the results while the job runs. */
export function checkpointOf({ out, format }: OutOptions): string | undefined {
  return format === 'csv' && out !== undefined ? `${out}.jsonl` : out;
}

/** Refuses to mix the results of two jobs in one file, and a file that can't be written. */
export async function checkOut(command: OutOptions): Promise<void> {
  const { out, format, resume, force } = command;
  if (force && !resume) throw new CliError('--force needs --resume.', EXIT.usage);
  if (out === undefined) {
    if (resume) throw new CliError('--resume needs --out, the file with the earlier results.', EXIT.usage);
    if (format === 'csv') throw new CliError('--format csv needs --out, a file for the results.', EXIT.usage);
    return;
  }
  const checkpoint = checkpointOf(command)!;
  const canResume = resume && (checkpoint === out || (await isUsed(checkpoint)));
  for (const path of new Set([out, checkpoint])) {
    await expectWritable(path);
    if (canResume || !(await isUsed(path))) continue;
    throw new CliError(
      `${path} is not empty. Pass --resume to continue its job, or name another file.`,
      EXIT.usage,
    );
  }
}

export async function isUsed(path: string): Promise<boolean> {
  const file = await stat(path).catch(() => undefined);
  return file?.isFile() === true && file.size > 0;
}

async function expectWritable(path: string): Promise<void> {
  try {
    const exists = await stat(path).catch(() => undefined);
    if (exists) await (await open(path, 'r+')).close();
    else await access(dirname(path), constants.W_OK);
  } catch (cause) {
    throw new CliError(`--out ${path} can't be written: ${(cause as Error).message}.`, EXIT.usage, { cause });
  }
}

/** Never rejects: an error that ended the job counts more. */
export async function writeTable(checkpoint: string, out: string, report: MapReport): Promise<void> {
  await writeCsv(checkpoint, out).catch((error: Error) => {
    report.fail(`${out} can't be written: ${error.message}. The results are in ${checkpoint}.`);
  });
}
