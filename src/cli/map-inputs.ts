import { open, type FileHandle } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { readRecords } from '../jobs/checkpoint.js';
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

/** Checks an input at its index, from 0. Throws if an earlier job had another input there. */
export type CheckInput = (input: unknown, index: number) => void;

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
  check: CheckInput,
): Promise<MapInputs> {
  const isStdin = path === undefined || path === '-';
  const name = isStdin ? 'stdin' : path;
  const format = inputFormat ?? (isStdin ? 'lines' : formatOf(path));
  const read: Read = (stream) => readInputs[format](linesOf(stream, name), name);
  const readChecked: Read = (stream) => checkedInputs(read(stream), check);
  if (isStdin) return inputsOf(process.stdin, signal, readChecked);
  const file = await open(path).catch((cause: unknown) => {
    throw new CliError(`The inputs can't be read: ${(cause as Error).message}.`, EXIT.usage, { cause });
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
  check: CheckInput,
): AsyncGenerator<unknown, void, undefined> {
  let index = 0;
  for await (const input of inputs) {
    check(input, index++);
    yield input;
  }
}

/**
 * Reads which inputs the earlier jobs of a checkpoint had, to refuse other inputs. More inputs at the end are allowed.
 * With `--force`, one index may have had several inputs.
 */
export async function readInputCheck(checkpoint: string): Promise<CheckInput> {
  const known = new Map<number, unknown>();
  const others = new Set<string>();
  const isKnown = (input: unknown, index: number) => keyOf(known.get(index)) === keyOf(input);
  for await (const { index, input } of readRecords(checkpoint)) {
    if (known.has(index) && !isKnown(input, index)) others.add(`${index} ${keyOf(input)}`);
    else known.set(index, input);
  }
  return (input, index) => {
    if (!known.has(index) || isKnown(input, index) || others.has(`${index} ${keyOf(input)}`)) return;
    const [now, before] = [input, known.get(index)].map((one) => excerpt(showInput(one), 100));
    throw new CliError(
      `These are not the inputs of ${checkpoint}: input ${index + 1} is ${now}, and was ${before}. Use the same inputs ` +
        '(more at the end are fine), or add --force to run all inputs that have no result.',
      EXIT.usage,
    );
  };
}
