import { open, type FileHandle } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { readRecords } from '../jobs/checkpoint.js';
import { hostNames } from '../jobs/host-slots.js';
import type { MapOptions } from '../jobs/options.js';
import { keyOf } from '../jobs/stored-outcomes.js';
import { excerpt } from '../shared/redact.js';
import { CliError, EXIT } from './errors.js';
import { formatOf, readInputs, showInput, type InputFormat } from './input-formats.js';
import { linesOf } from './input-lines.js';
import { note } from './terminal.js';

export interface MapInputs extends Disposable {
  /** Read on demand. */
  readonly values: AsyncIterable<unknown>;
  /** Number of inputs, where they can be counted in advance. */
  readonly total: number | undefined;
}

/** Checks inputs before they are used. Both functions throw if an earlier job had other inputs. */
export interface InputCheck {
  /** @param index From 0. */
  check(input: unknown, index: number): void;
  /** No input is left. @param count Number of inputs. */
  end(count: number): void;
}

/** Accepts any inputs. */
export const ANY_INPUT: InputCheck = { check: () => {}, end: () => {} };

/** The arguments and options that name the inputs. */
export interface InputOptions {
  /** Path of a file; stdin by default. */
  inputs: string | undefined;
  /** By the name of the file by default. */
  inputFormat?: InputFormat;
}

/**
 * Opens a file of inputs, or stdin. All inputs of a file are checked now, those of stdin when they are read: a line that
 * is no input, or that `check` refuses, ends the command with exit code 2.
 *
 * @param signal Ends the wait for the next line.
 */
export async function openInputs(
  { inputs: path, inputFormat }: InputOptions,
  signal: AbortSignal,
  check: InputCheck,
): Promise<MapInputs> {
  const isStdin = path === undefined || path === '-';
  const name = isStdin ? 'stdin' : path;
  const format = inputFormat ?? (isStdin ? 'lines' : formatOf(path));
  const read: Read = (stream) => readInputs[format](linesOf(stream, name), name);
  const readChecked: Read = (stream) => checkedInputs(read(stream), check);
  if (isStdin) return inputsOf(process.stdin, signal, readChecked);
  const file = await open(path).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? `the file ${path} does not exist` : cause.message;
    throw new CliError(`The inputs can't be read: ${why}.`, EXIT.usage, { cause });
  });
  if (inputFormat === undefined && TABLE.test(path)) note(`${path} is a table: ${EACH_LINE}`);
  const stats = await file.stat();
  if (stats.isDirectory()) {
    await file.close();
    throw new CliError(`The inputs can't be read: ${path} is a folder.`, EXIT.usage);
  }
  // Other kinds of files, such as a pipe of the shell, can be read only once.
  if (!stats.isFile()) return inputsOf(file.createReadStream(), signal, readChecked);
  const total = await countInputs(file, readChecked).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  return inputsOf(file.createReadStream({ start: 0 }), signal, read, total);
}

/** A table that is not CSV. */
const TABLE = /\.tsv$/i;
const EACH_LINE =
  'each of its lines is one input, with all columns and separators, also a first line with their names. The task gets the line as it is.';

type Read = (stream: Readable) => AsyncIterable<unknown>;

function inputsOf(stream: Readable, signal: AbortSignal, read: Read, total?: number): MapInputs {
  // The reader gets the error too; without a listener, an error between two reads would end the program.
  stream.on('error', () => {});
  addAbortSignal(signal, stream);
  // An open stdin would keep the program alive.
  return { values: read(stream), total, [Symbol.dispose]: () => void stream.destroy() };
}

async function countInputs(file: FileHandle, read: Read): Promise<number> {
  const inputs = read(file.createReadStream({ start: 0, autoClose: false }))[Symbol.asyncIterator]();
  let count = 0;
  while (!(await inputs.next()).done) count++;
  return count;
}

async function* checkedInputs(
  inputs: AsyncIterable<unknown>,
  check: InputCheck,
): AsyncGenerator<unknown, void, undefined> {
  let count = 0;
  for await (const input of inputs) {
    check.check(input, count++);
    yield input;
  }
  check.end(count);
}

/**
 * Reads which inputs the earlier jobs of a checkpoint had, to refuse other inputs. More inputs at the end are allowed.
 * With `--force`, one index may have had several inputs.
 */
export async function readInputCheck(checkpoint: string): Promise<InputCheck> {
  const known = new Map<number, unknown>();
  const others = new Set<string>();
  const isKnown = (input: unknown, index: number) => keyOf(known.get(index)) === keyOf(input);
  let least = 0;
  for await (const { index, input } of readRecords(checkpoint)) {
    least = Math.max(least, index + 1);
    if (known.has(index) && !isKnown(input, index)) others.add(`${index} ${keyOf(input)}`);
    else known.set(index, input);
  }
  const advice = 'or add --force to run all inputs that have no result';
  return {
    check: (input, index) => {
      if (!known.has(index) || isKnown(input, index) || others.has(`${index} ${keyOf(input)}`)) return;
      const [now, before] = [input, known.get(index)].map((one) => excerpt(showInput(one), 100));
      throw otherInputs(checkpoint, `input ${index + 1} is ${now}, and was ${before}`, advice);
    },
    end: (count) => expectAtLeast(least, count, checkpoint, advice),
  };
}

/** Also refuses an input without a host, if hosts have limits: now, not when a task needs the input. */
export function withHosts(
  check: InputCheck,
  { hostOf, hostConcurrency = Number.POSITIVE_INFINITY, hostDelay = 0 }: HostOptions,
): InputCheck {
  // A function of the user is called once for each input.
  if (hostOf) return check;
  const nameHost = hostNames({ hostConcurrency, hostDelay });
  return {
    check: (input, index) => {
      check.check(input, index);
      nameHost(input, index);
    },
    end: (count) => check.end(count),
  };
}

type HostOptions = Pick<MapOptions, 'hostOf' | 'hostConcurrency' | 'hostDelay'>;

/** The error of inputs that are not those of the earlier job. @param advice What to do if they are meant. */
export function otherInputs(source: string, what: string, advice: string): CliError {
  const same = 'Use the same inputs (more at the end are fine)';
  return new CliError(`These are not the inputs of ${source}: ${what}. ${same}, ${advice}.`, EXIT.usage);
}

/** Refuses fewer inputs than the results are for: the others would silently be skipped, also those that failed. */
export function expectAtLeast(least: number, count: number, source: string, advice: string): void {
  if (count >= least) return;
  const what = `there are ${count}, and it has results of ${least === 1 ? '1' : `at least ${least}`}`;
  throw otherInputs(source, what, advice);
}
