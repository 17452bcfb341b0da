import type { FileHandle } from 'node:fs/promises';
import { CheckpointError } from '../shared/lease-errors.js';
import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import type { Outcome } from './outcome.js';
import { recordOf } from './outcome-record.js';
import { readRecords } from './checkpoint-records.js';

/** Where outcomes are kept, and which of them stand. */
export interface CheckpointOptions {
  /** Path of the file; it is made where there is none. */
  path: string;
  /** Run inputs again that failed in an earlier job. Those that succeeded never are. Default: `true`. */
  retryRejected?: boolean | undefined;
}

/** The option, checked. */
export function checkCheckpoint(
  option: string | CheckpointOptions | undefined,
): CheckpointOptions | undefined {
  if (option === undefined) return undefined;
  const options = typeof option === 'string' ? { path: option } : option;
  rejectUnknownOptions(options, ['path', 'retryRejected'], 'checkpoint');
  const { path, retryRejected = true } = options;
  if (typeof path !== 'string' || path === '' || typeof retryRejected !== 'boolean') {
    throw new InvalidOptionError('checkpoint', 'checkpoint must be a path, or { path, retryRejected }.');
  }
  return { path, retryRejected };
}

/** A file that outcomes are appended to, and that tells which inputs have theirs. */
export class Checkpoint {
  readonly #file: FileHandle;
  readonly #path: string;
  /** How often each input, as JSON, has its outcome. */
  readonly #done: Map<string, number>;
  #writing: Promise<void> = Promise.resolve();

  static async open({ path, retryRejected }: CheckpointOptions): Promise<Checkpoint> {
    const { open } = await import('node:fs/promises');
    const file = await open(path, 'a+').catch((cause: unknown) => {
      throw new CheckpointError(`The checkpoint ${path} can't be opened.`, { cause });
    });
    try {
      const { done, end } = await readDone(file, path, { retryRejected: retryRejected ?? true });
      // A job that was killed may have left half a line.
      await file.truncate(end);
      return new Checkpoint(file, path, done);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  private constructor(file: FileHandle, path: string, done: Map<string, number>) {
    this.#file = file;
    this.#path = path;
    this.#done = done;
  }

  /** True when the input has its outcome. Each outcome stands for one of several equal inputs. */
  readonly has = (input: unknown): boolean => {
    const key = JSON.stringify(input);
    const left = this.#done.get(key) ?? 0;
    if (left === 0) return false;
    if (left === 1) this.#done.delete(key);
    else this.#done.set(key, left - 1);
    return true;
  };

  /** Resolves when the outcome is with the operating system: a process that is killed then does not lose it. */
  write(outcome: Outcome<unknown, unknown>): Promise<void> {
    const line = `${this.#toJson(outcome)}\n`;
    this.#writing = this.#writing.then(() => this.#file.appendFile(line));
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#file.close();
  }

  #toJson(outcome: Outcome<unknown, unknown>): string {
    try {
      return JSON.stringify(recordOf(outcome));
    } catch (cause) {
      const message = `The outcome of input ${outcome.index} can't be written to ${this.#path} as JSON.`;
      throw new CheckpointError(message, { cause });
    }
  }
}

async function readDone(
  file: FileHandle,
  path: string,
  { retryRejected }: { retryRejected: boolean },
): Promise<{ done: Map<string, number>; end: number }> {
  // An input that was run again has several lines: the last one stands.
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
