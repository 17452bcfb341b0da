import type { FileHandle } from 'node:fs/promises';
import { CheckpointError } from '../shared/lease-errors.js';
import { parseJson } from '../shared/json.js';
import { isOutcomeRecord, type OutcomeRecord } from './outcome-record.js';

const NEWLINE = 0x0a;

/** Each outcome, and where in the file its line ends. */
export async function* readRecords(
  file: FileHandle,
  path: string,
): AsyncGenerator<{ record: OutcomeRecord; end: number }, void, undefined> {
  let end = 0;
  let line = 0;
  for await (const text of readLines(file)) {
    line++;
    end += Buffer.byteLength(text) + 1;
    yield { record: parseRecord(text, `${path}, line ${line}`), end };
  }
}

/** Whole lines only. */
async function* readLines(file: FileHandle): AsyncGenerator<string, void, undefined> {
  let rest: Buffer[] = [];
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
    let bytes = chunk as Buffer;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE)) {
      yield Buffer.concat([...rest, bytes.subarray(0, at)]).toString();
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
  throw new CheckpointError(`${where}: this is no outcome of mapPooledBrowsers.`, { cause });
}
