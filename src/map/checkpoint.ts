import type { FileHandle } from 'node:fs/promises';
import { parseJson } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';
import type { CheckpointOptions } from './options.js';
import { isOutcomeRecord, recordOf, type Outcome, type OutcomeRecord, type OutcomeSink } from './outcome.js';

/**
 * Reads the outcomes in a checkpoint of `mapPooledBrowsers`, in the order in which they were written. An input that was
 * run again has several outcomes; the last one counts. An incomplete line at the end, left by a killed job, is ignored.
 *
 * @param path Path of the file.
 * @throws `CheckpointError` when the file does not exist or is not a checkpoint.
 */
export async function* readCheckpoint(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const file = await openFile(path, 'r');
  try {
    for await (const { record } of readRecords(file, path)) yield record;
  } finally {
    await file.close();
  }
}

/** Opens a file to which outcomes are appended. The inputs of its earlier outcomes are skipped. */
export async function openCheckpoint(option: string | CheckpointOptions): Promise<OutcomeSink> {
  const { path, retryRejected = true } = typeof option === 'string' ? { path: option } : option;
  const { lockCheckpoint } = await import('./file-lock.js');
  const unlock = await lockCheckpoint(path);
  let file: FileHandle | undefined;
  try {
    file = await openFile(path, 'a+');
    const { done, end } = await readDone(file, path, retryRejected);
    // A killed job may have left an incomplete line.
    await file.truncate(end);
    return checkpointSink(file, { path, done, unlock });
  } catch (error) {
    await file?.close();
    await unlock();
    throw error;
  }
}

/** @param done Number of stored outcomes of each input, by the input's JSON. */
function checkpointSink(
  file: FileHandle,
  { path, done, unlock }: { path: string; done: Map<string, number>; unlock: () => Promise<void> },
): OutcomeSink {
  let writing: Promise<void> = Promise.resolve();
  return {
    has: (input) => {
      const key = JSON.stringify(input);
      const left = done.get(key) ?? 0;
      if (left > 0) done.set(key, left - 1);
      return left > 0;
    },
    // The operating system has the outcome then. If this process is killed, the outcome is not lost.
    write: async (outcome) => {
      const line = toLine(outcome, path);
      writing = writing.then(() => file.appendFile(line));
      return writing;
    },
    close: async () => {
      await writing.catch(() => {});
      await file.close();
      await unlock();
    },
  };
}

function toLine(outcome: Outcome<unknown, unknown>, path: string): string {
  try {
    return `${JSON.stringify(recordOf(outcome))}\n`;
  } catch (cause) {
    const message = `The outcome of input ${outcome.index} cannot be written to ${path} as JSON.`;
    throw new CheckpointError(message, { cause });
  }
}

async function openFile(path: string, flags: 'r' | 'a+'): Promise<FileHandle> {
  const { open } = await import('node:fs/promises');
  return open(path, flags, 0o600).catch((cause: unknown) => {
    throw new CheckpointError(`The checkpoint ${path} cannot be opened.`, { cause });
  });
}

/** Counts the outcomes of each input, and finds the end of the last complete line. */
async function readDone(file: FileHandle, path: string, retryRejected: boolean) {
  // An input that was run again has several lines; the last one counts.
  const last = new Map<string, { key: string; isDone: boolean }>();
  let end = 0;
  for await (const { record, end: endOfLine } of readRecords(file, path)) {
    const key = JSON.stringify(record.input);
    last.set(`${record.index} ${key}`, { key, isDone: record.status === 'fulfilled' || !retryRejected });
    end = endOfLine;
  }
  const done = new Map<string, number>();
  for (const { key, isDone } of last.values()) if (isDone) done.set(key, (done.get(key) ?? 0) + 1);
  return { done, end };
}

/** Reads the complete lines. `end` is the position behind a line in the file, in bytes. */
async function* readRecords(
  file: FileHandle,
  path: string,
): AsyncGenerator<{ record: OutcomeRecord; end: number }, void, undefined> {
  let rest: Buffer[] = [];
  let end = 0;
  let number = 0;
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
    let bytes = chunk as Buffer;
    for (let at = bytes.indexOf('\n'); at !== -1; at = bytes.indexOf('\n')) {
      const line = Buffer.concat([...rest, bytes.subarray(0, at)]);
      end += line.length + 1;
      yield { record: parseRecord(line.toString(), `${path}, line ${++number}`), end };
      rest = [];
      bytes = bytes.subarray(at + 1);
    }
    rest.push(bytes);
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
