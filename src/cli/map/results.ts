import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { Outcome } from '../../map/outcome.js';
import { recordOf } from '../../map/outcome-record.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

/** Refuses to mix the results of two jobs in one file. */
export async function checkOut({
  out,
  resume,
}: {
  out?: string | undefined;
  resume?: true | undefined;
}): Promise<void> {
  if (out === undefined) {
    if (resume) throw new CliError('--resume needs --out: that file says what is done.', EXIT.usage);
    return;
  }
  const file = await stat(out).catch(() => undefined);
  if (resume || !file?.isFile() || file.size === 0) return;
  const ways = 'Pass --resume to go on with the job that it is of, or name another file.';
  throw new CliError(`${out} is not empty. ${ways}`, EXIT.usage);
}

/** Writes an outcome to stdout. Resolves when the reader has room for another. */
export async function printOutcome(outcome: Outcome<string, unknown>): Promise<void> {
  if (!process.stdout.write(`${toJson(outcome)}\n`)) await once(process.stdout, 'drain');
}

function toJson(outcome: Outcome<string, unknown>): string {
  try {
    return JSON.stringify(recordOf(outcome));
  } catch (cause) {
    throw new CliError(`The result for ${outcome.input} can't be written as JSON.`, EXIT.failed, { cause });
  }
}
