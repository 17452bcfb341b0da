import { CheckpointError } from '../shared/lease-errors.js';
import { readRecords } from './checkpoint-records.js';
import type { OutcomeRecord } from './outcome-record.js';

/**
 * The outcomes in a checkpoint of `mapPooledBrowsers`, in the order in which they came. An input that was run again
 * has several; the last one stands. Half a line at the end, left by a job that was killed, is passed over.
 *
 * @throws `CheckpointError` when there is no such file, or it is no checkpoint.
 */
export async function* readCheckpoint(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const { open } = await import('node:fs/promises');
  const file = await open(path).catch((cause: unknown) => {
    throw new CheckpointError(`The checkpoint ${path} can't be opened.`, { cause });
  });
  try {
    for await (const { record } of readRecords(file, path)) yield record;
  } finally {
    await file.close();
  }
}
