import { realpath, stat, truncate, type FileHandle } from 'node:fs/promises';
import { FileLock, type LockErrors } from '../shared/file-lock.js';
import { parseJson } from '../shared/json.js';
import { CheckpointError } from '../shared/lease-errors.js';
import { printable } from '../shared/redact.js';
import { LONGEST_LINE, openFile, readLines, replaceFile } from './checkpoint-file.js';
import type { InputSource, IterableSource } from './input-source.js';
import type { CheckpointSettings } from './options.js';
import { isOutcomeRecord, recordOfOutcome, type Outcome, type OutcomeRecord } from './outcome.js';
import { keyOf, StoredOutcomes } from './stored-outcomes.js';
import { expectData } from './task-value.js';

/**
 * Skips the inputs whose outcome is in a checkpoint, and stores the outcomes of the others there before the loop receives them.
 * The file is opened with the first input.
 */
export function withCheckpoint<Input>(
  source: IterableSource<Input>,
  option: CheckpointSettings,
): InputSource<Input> {
  let opening: Promise<Checkpoint> | undefined;
  return {
    size: source.size,
    storesJson: true,
    pull: async () => {
      const checkpoint = await (opening ??= openCheckpoint(option));
      const next = await source.pull();
      if (!next) return undefined;
      expectData(next.input, next.index);
      const key = keyOf(next.input);
      if (checkpoint.has(key, next.index)) return 'skipped';
      // A task may change its input: a later job searches for what it receives itself.
      const stored = () => (key === '' ? undefined : parseJson(key));
      return {
        ...next,
        settle: async (outcome) => (await checkpoint.write({ ...outcome, input: stored() }), true),
      };
    },
    close: async () => {
      await source.close();
      const checkpoint = await opening?.catch(() => undefined);
      await checkpoint?.close();
    },
  };
}

interface Checkpoint {
  /** Returns true once for each stored outcome of an equal input. Such an input is skipped. @param key The input, by `keyOf`. */
  has(key: string, index: number): boolean;
  /** Resolves when the outcome is stored. */
  write(outcome: Outcome<unknown, unknown, object>): Promise<void>;
  close(): Promise<void>;
}

async function openCheckpoint(option: CheckpointSettings): Promise<Checkpoint> {
  const { path, retryRejected: retriesRejected } = option;
  const stored = new StoredOutcomes({ retriesRejected });
  const file = await RecordFile.open(path, (record, start) => stored.add(record, start));
  return {
    has: (key, index) => stored.has(key, index),
    write: async (outcome) => {
      await file.append(recordOfOutcome(outcome));
      stored.replace(outcome.index);
    },
    close: () => file.close(stored.superseded),
  };
}

/** A file of outcomes that no other job writes. */
export class RecordFile {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #lock: FileLock;
  /** The inode of the file, which another program may replace by one with the same path. */
  readonly #id: number;
  /** Number of bytes in the file. */
  #size: number;
  #writing: Promise<void> = Promise.resolve();

  /**
   * Opens a file to which outcomes are appended, and locks it.
   *
   * @param onRecord Receives each outcome in the file, with the position of its line in bytes.
   */
  static async open(
    path: string,
    onRecord: (record: OutcomeRecord, start: number) => void,
  ): Promise<RecordFile> {
    // A link to the file has the same lock.
    const lock = await FileLock.take(await realpath(path).catch(() => path), LOCK_ERRORS);
    let file: FileHandle | undefined;
    try {
      file = await openFile(path, 'a+');
      let end = 0;
      let isComplete = true;
      let size = 0;
      for await (const line of linesOf(file, path)) {
        const { record, start, bytes } = line;
        ({ isComplete } = line);
        size = start + bytes.length;
        if (record) onRecord(record, start);
        else if (start === 0 && !isComplete && !beginsAsRecord(bytes)) throw notOutcome(path);
        if (record || isComplete) end = size;
        else isComplete = true;
      }
      const [facts, { ino: id }] = await Promise.all([stat(path), file.stat()]);
      if (facts.size !== size || facts.ino !== id) throw changed(path);
      // A killed job may have left an incomplete line. Not `file.truncate`: on Windows, a handle for appending can't truncate.
      await truncate(path, end);
      // An editor may have removed the last line break.
      if (!isComplete) await file.appendFile('\n');
      return new RecordFile(file, { path, id, size: end + Number(!isComplete) }, lock);
    } catch (error) {
      await file?.close();
      await lock.release();
      throw faultOf(error, `The checkpoint ${path} cannot be opened`);
    }
  }

  private constructor(
    file: FileHandle,
    { path, id, size }: { readonly path: string; readonly id: number; readonly size: number },
    lock: FileLock,
  ) {
    this.#file = file;
    this.#path = path;
    this.#id = id;
    this.#size = size;
    this.#lock = lock;
  }

  /** Resolves when the operating system has the outcome: it survives the end of this process. */
  async append(record: OutcomeRecord): Promise<void> {
    const line = toLine(record, this.#path);
    this.#writing = this.#writing.then(async () => {
      await this.#lock.check();
      await this.#facts();
      await this.#file.appendFile(line);
      this.#size += Buffer.byteLength(line);
    });
    // After a line that was not written completely, nothing more is written.
    await this.#writing.catch((error: unknown) => {
      throw faultOf(error, `The outcome of input ${record.index} cannot be written to ${this.#path}`);
    });
  }

  /**
   * Closes the file.
   *
   * @param superseded Positions of the lines to remove, in bytes, so that the file has one line per input.
   */
  async close(superseded: ReadonlySet<number>): Promise<void> {
    const isWhole = await this.#writing.then(
      () => true,
      () => false,
    );
    try {
      await this.#file.close();
      // After a failure, another job may have the file.
      if (!isWhole) return;
      const facts = await this.#facts();
      if (superseded.size > 0) {
        // The positions are those of our lines.
        if (facts.size !== this.#size) throw changed(this.#path);
        // That job would go on to write into the file that is replaced.
        await this.#lock.check(0);
        await replaceFile(this.#path, keptLines(this.#path, superseded));
      }
    } catch (error) {
      throw faultOf(
        error,
        `All outcomes are in ${this.#path}, but the old outcomes of inputs that were run again could not be removed`,
      );
    } finally {
      await this.#lock.release();
    }
  }

  /** @throws If the path has another file, or none: what is written to ours is lost then. */
  async #facts(): Promise<{ readonly size: number }> {
    const facts = await stat(this.#path).catch(() => undefined);
    if (facts?.ino !== this.#id) throw changed(this.#path);
    return facts;
  }
}

/** Names the file: an error of a full disk does not. */
function faultOf(cause: unknown, what: string): CheckpointError {
  if (cause instanceof CheckpointError) return cause;
  return new CheckpointError(`${what}: ${(cause as Error).message}.`, { cause });
}

async function* keptLines(path: string, superseded: ReadonlySet<number>): AsyncGenerator<Buffer> {
  const file = await openFile(path, 'r');
  try {
    for await (const { bytes, start } of readLines(file, path)) if (!superseded.has(start)) yield bytes;
  } finally {
    // Before the file is replaced: Windows does not replace an open file.
    await file.close();
  }
}

function toLine(record: OutcomeRecord, path: string): string {
  try {
    // Escaped, the line has the same value and does not control the terminal of its reader.
    const line = `${printable(JSON.stringify(record))}\n`;
    // No later job could read it.
    if (Buffer.byteLength(line) > LONGEST_LINE) throw new RangeError('The outcome is too long');
    return line;
  } catch (cause) {
    const message = `The outcome of input ${record.index} cannot be written to ${path} as JSON.`;
    throw new CheckpointError(message, { cause });
  }
}

/** Reads the outcomes in a checkpoint, in the order in which they were written. */
export async function* readRecords(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const file = await openFile(path, 'r');
  try {
    for await (const { record } of linesOf(file, path)) if (record) yield record;
  } finally {
    await file.close();
  }
}

/** Reads the same outcomes in the order of the inputs. In memory, an outcome is the position of its line. */
export async function* readRecordsInOrder(path: string): AsyncGenerator<OutcomeRecord, void, undefined> {
  const file = await openFile(path, 'r');
  try {
    const lines: { index: number; start: number; length: number }[] = [];
    for await (const { record, start, bytes } of linesOf(file, path))
      if (record) lines.push({ index: record.index, start, length: bytes.length });
    lines.sort((one, other) => one.index - other.index);
    for (const { start, length } of lines) {
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, start);
      yield parseRecord(textOf(buffer), path);
    }
  } finally {
    await file.close();
  }
}

interface CheckpointLine {
  /** Undefined for a blank line, and for one that a killed job left incomplete at the end. */
  readonly record: OutcomeRecord | undefined;
  readonly bytes: Buffer;
  /** Position in the file, in bytes. */
  readonly start: number;
  /** The line has a line break. */
  readonly isComplete: boolean;
}

/** Reads the lines as a job or an editor has written them: with a byte order mark, blank lines, and without the last line break. */
async function* linesOf(file: FileHandle, path: string): AsyncGenerator<CheckpointLine, void, undefined> {
  let number = 0;
  for await (const line of readLines(file, path, (bytes) => expectOutcomes(bytes, path))) {
    const where = `${path}, line ${++number}`;
    const text = textOf(line.bytes);
    const record = line.isComplete ? recordOf(text, where) : wholeRecordIn(text);
    yield { ...line, record };
  }
}

const NOT_UTF8 =
  'this file is in UTF-16, and a checkpoint is in UTF-8. Save it as UTF-8: an editor shows the encoding in "Save as".';

/** Refuses a file of another kind by its first bytes: a large one may have no line break. */
function expectOutcomes(beginning: Buffer, path: string): void {
  if (isUtf16(beginning)) throw new CheckpointError(`${path}: ${NOT_UTF8}`);
  const text = textOf(beginning).trimStart();
  if (!beginning.includes('\n') && text !== '' && !text.startsWith('{')) throw notOutcome(path);
}

/** Every line begins with a bracket, whose other byte in UTF-16 is 0. */
function isUtf16([first, second]: Buffer): boolean {
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return isMarked || first === 0 || second === 0;
}

/** Decodes a line, without the byte order mark that the first one may have. */
function textOf(line: Buffer): string {
  return line.toString().replace(/^\uFEFF/, '');
}

function recordOf(text: string, where: string): OutcomeRecord | undefined {
  return text.trim() === '' ? undefined : parseRecord(text, where);
}

/** Reads the end of a file without a line break. It is no error if it is incomplete. */
function wholeRecordIn(text: string): OutcomeRecord | undefined {
  try {
    const record = parseJson(text);
    return isOutcomeRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

/** How `toLine` begins each line. */
const BEGINNING = '{"status":"';

/** Returns false for a file of another kind: without a line break, it would look like an incomplete line, and be emptied. */
function beginsAsRecord(line: Buffer): boolean {
  return BEGINNING.startsWith(textOf(line).trim().slice(0, BEGINNING.length));
}

function changed(path: string): CheckpointError {
  return new CheckpointError(
    `Another program has changed, replaced or deleted the checkpoint ${path} during the job. Start the job again when no other ` +
      'program writes to the file: inputs without an outcome there run again.',
  );
}

function notOutcome(where: string, cause?: unknown, advice = 'Use another file.'): CheckpointError {
  return new CheckpointError(`${where}: this is not an outcome of mapPooledBrowsers. ${advice}`, { cause });
}

const OF_DAMAGED_LINE =
  'Use another file; or, if only this line is damaged, delete the line, and its input runs again.';

function parseRecord(text: string, where: string): OutcomeRecord {
  let cause: unknown;
  try {
    const record = parseJson(text);
    if (isOutcomeRecord(record)) return record;
  } catch (error) {
    cause = error;
  }
  throw notOutcome(where, cause, OF_DAMAGED_LINE);
}

const LOCK_ERRORS: LockErrors = {
  cannotLock: (path, why, cause) =>
    new CheckpointError(
      `The checkpoint ${path} cannot be opened: ${why}. A job locks its file with another one beside it, so that the ` +
        'folder must be writable.',
      { cause },
    ),
  inUse: (path, who = 'another job') =>
    new CheckpointError(
      `The checkpoint ${path} is in use by ${who}. Two jobs in one file would lose outcomes: wait for the other one, or ` +
        `use another file. If that process no longer runs, delete ${path}.lock.`,
    ),
};
