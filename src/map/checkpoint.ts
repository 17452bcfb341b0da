import type { FileHandle } from 'node:fs/promises';
import { parseJson } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';
import { printable } from '../shared/redact.js';
import type { CheckpointOptions } from './options.js';
import { isOutcomeRecord, recordOf, type OutcomeRecord, type OutcomeSink } from './outcome.js';
import { StoredOutcomes } from './stored-outcomes.js';

/**
 * Reads the outcomes in a checkpoint of `mapPooledBrowsers`, in the order in which they were written. The file of a job
 * that still runs, or that was killed, may have several outcomes of an input that was run again; the last one counts.
 * An incomplete line at the end, left by a killed job, is ignored.
 *
 * @param path Path of the file.
 * @throws `CheckpointError` when the file does not exist or is not a checkpoint.
 */
export async function* readCheckpoint(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const { openFile } = await loadFiles();
  const file = await openFile(path, 'r');
  try {
    for await (const { record } of readRecords(file, path)) yield record;
  } finally {
    await file.close();
  }
}

/** Reads the same outcomes in the order of the inputs. In memory, an outcome is the position of its line. */
export async function* readCheckpointInOrder(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const { openFile } = await loadFiles();
  const file = await openFile(path, 'r');
  try {
    const lines: { index: number; start: number; length: number }[] = [];
    for await (const { record, start, length } of readRecords(file, path))
      lines.push({ index: record.index, start, length });
    lines.sort((one, other) => one.index - other.index);
    for (const { start, length } of lines) {
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, start);
      yield parseRecord(buffer.toString(), path);
    }
  } finally {
    await file.close();
  }
}

/** Opens a file to which outcomes are appended. The inputs of its earlier outcomes are skipped. */
export async function openCheckpoint(option: string | CheckpointOptions): Promise<OutcomeSink> {
  const { path, retryRejected = true } = typeof option === 'string' ? { path: option } : option;
  const stored = new StoredOutcomes({ retriesRejected: retryRejected });
  const file = await openRecords(path, (record, start) => stored.add(record, start));
  return {
    has: (input, index) => stored.has(input, index),
    write: async (outcome) => {
      await file.append(recordOf(outcome));
      stored.replace(outcome.index);
    },
    close: () => file.close(stored.superseded),
  };
}

/** A file of outcomes that no other job writes. */
export interface RecordFile {
  /** Resolves when the operating system has the outcome: it survives the end of this process. */
  append(record: OutcomeRecord): Promise<void>;
  /**
   * Closes the file.
   *
   * @param superseded Positions of the lines to remove, in bytes.
   */
  close(superseded: ReadonlySet<number>): Promise<void>;
}

/**
 * Opens a file to which outcomes are appended, and locks it.
 *
 * @param onRecord Receives each outcome in the file, with the position of its line in bytes.
 */
export async function openRecords(
  path: string,
  onRecord: (record: OutcomeRecord, start: number) => void,
): Promise<RecordFile> {
  const { lockCheckpoint } = await import('./file-lock.js');
  const { truncate } = await import('node:fs/promises');
  const { openFile } = await loadFiles();
  const unlock = await lockCheckpoint(path);
  let file: FileHandle | undefined;
  try {
    file = await openFile(path, 'a+');
    let end = 0;
    for await (const { record, start, length } of readRecords(file, path)) {
      onRecord(record, start);
      end = start + length;
    }
    // A killed job may have left an incomplete line. Not `file.truncate`: on Windows, a handle for appending can't truncate.
    await truncate(path, end);
    return recordFile(file, path, unlock);
  } catch (error) {
    await file?.close();
    await unlock();
    throw error;
  }
}

/** Imported when there is a checkpoint: the root entry loads no file functions. */
const loadFiles = () => import('./checkpoint-file.js');

function recordFile(file: FileHandle, path: string, unlock: () => Promise<void>): RecordFile {
  let writing: Promise<void> = Promise.resolve();
  return {
    append: async (record) => {
      const line = toLine(record, path);
      writing = writing.then(() => file.appendFile(line));
      await writing;
    },
    close: async (superseded) => {
      await writing.catch(() => {});
      await file.close();
      try {
        await compact(path, superseded);
      } finally {
        await unlock();
      }
    },
  };
}

/** Removes the lines of inputs that were run again, so that the file has one line per input. */
async function compact(path: string, superseded: ReadonlySet<number>): Promise<void> {
  if (superseded.size === 0) return;
  const { removeLines } = await loadFiles();
  await removeLines(path, superseded).catch((cause: Error) => {
    const message = `All outcomes are in ${path}, but the old outcomes of inputs that were run again could not be removed`;
    throw new CheckpointError(`${message}: ${cause.message}.`, { cause });
  });
}

function toLine(record: OutcomeRecord, path: string): string {
  try {
    // Escaped, the line has the same value and does not control the terminal of its reader.
    return `${printable(JSON.stringify(record))}\n`;
  } catch (cause) {
    const message = `The outcome of input ${record.index} cannot be written to ${path} as JSON.`;
    throw new CheckpointError(message, { cause });
  }
}

/** Reads the complete lines. `start` and `length` of a line are in bytes. */
async function* readRecords(
  file: FileHandle,
  path: string,
): AsyncGenerator<{ record: OutcomeRecord; start: number; length: number }, void, undefined> {
  const { readLines } = await loadFiles();
  let number = 0;
  for await (const { bytes, start } of readLines(file)) {
    const record = parseRecord(bytes.toString(), `${path}, line ${++number}`);
    yield { record, start, length: bytes.length };
  }
}

function parseRecord(text: string, where: string): OutcomeRecord {
  let cause: unknown;
  try {
    const record = parseJson(text);
    if (isOutcomeRecord(record)) return record;
  } catch (error) {
    cause = error;
  }
  throw new CheckpointError(`${where}: this is not an outcome of mapPooledBrowsers. Use another file.`, {
    cause,
  });
}
