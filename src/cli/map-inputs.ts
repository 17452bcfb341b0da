import { open, type FileHandle } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { readRecords } from '../jobs/checkpoint.js';
import { excerpt } from '../shared/redact.js';
import { CliError, EXIT } from './errors.js';
import { note } from './terminal.js';

export interface InputLines extends Disposable {
  /** The lines that are not blank, read on demand. */
  readonly lines: AsyncIterable<string>;
  /** Number of lines, where it can be counted in advance. */
  readonly total: number | undefined;
}

/** Checks an input at its index, from 0. Throws if an earlier job had another input there. */
export type CheckInput = (input: string, index: number) => void;

/**
 * Opens a file of inputs, or stdin. All inputs of a file are checked now, those of stdin when they are read: a line that
 * is not text, or that `check` refuses, ends the command with exit code 2.
 *
 * @param signal Ends the wait for the next line.
 */
export async function openInputs(
  path: string | undefined,
  signal: AbortSignal,
  check: CheckInput,
): Promise<InputLines> {
  if (path === undefined || path === '-') return inputsOf(process.stdin, signal, { check });
  const file = await open(path).catch((cause: unknown) => {
    throw new CliError(`The inputs can't be read: ${(cause as Error).message}.`, EXIT.usage, { cause });
  });
  if (TABLE.test(path)) note(`${path} is a table: ${EACH_LINE}`);
  const stats = await file.stat();
  if (stats.isDirectory()) {
    await file.close();
    throw new CliError(`The inputs can't be read: ${path} is a folder.`, EXIT.usage);
  }
  // Other kinds of files, such as a pipe of the shell, can be read only once.
  if (!stats.isFile()) return inputsOf(file.createReadStream(), signal, { check });
  const total = await countLines(file, check).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  return inputsOf(file.createReadStream({ start: 0 }), signal, { total });
}

/** A table of a spreadsheet, whose separator may be a comma, a semicolon or a tab. */
const TABLE = /\.(csv|tsv)$/i;
const EACH_LINE =
  'each of its lines is one input, with all columns and separators, also a first line with their names. The task gets the line as it is.';

function inputsOf(
  stream: Readable,
  signal: AbortSignal,
  { total, check }: { total?: number; check?: CheckInput },
): InputLines {
  // The reader gets the error too; without a listener, an error between two reads would end the program.
  stream.on('error', () => {});
  addAbortSignal(signal, stream);
  // An open stdin would keep the program alive.
  const lines = check ? checkedLines(stream, check) : linesOf(stream);
  return { lines, total, [Symbol.dispose]: () => void stream.destroy() };
}

async function countLines(file: FileHandle, check: CheckInput): Promise<number> {
  const lines = checkedLines(file.createReadStream({ start: 0, autoClose: false }), check);
  let count = 0;
  while (!(await lines.next()).done) count++;
  return count;
}

async function* checkedLines(stream: Readable, check: CheckInput): AsyncGenerator<string, void, undefined> {
  let index = 0;
  for await (const line of linesOf(stream)) {
    check(line, index++);
    yield line;
  }
}

/** Reads UTF-8, and UTF-16 with a byte order mark, as programs of Windows write it. */
async function* linesOf(stream: Readable): AsyncGenerator<string, void, undefined> {
  let decoder: TextDecoder | undefined;
  let rest: string[] = [];
  let number = 1;
  for await (const { bytes, isLast } of byteLinesOf(stream)) {
    decoder ??= new TextDecoder(encodingOf(bytes), { fatal: true });
    const [first = '', ...others] = decode(decoder, bytes, { isLast, number }).split('\n');
    rest.push(first);
    if (others.length === 0 && !isLast) continue;
    const lines = [rest.join(''), ...others];
    rest = isLast ? [] : [lines.pop()!];
    number += lines.length;
    for (const line of lines) if (line.trim() !== '') yield line.trim();
  }
}

/** In UTF-16, a line may begin with the second byte of the line feed, and its character may have a byte like a line feed. */
async function* byteLinesOf(stream: Readable): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let rest: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let bytes = chunk;
    for (let at = bytes.indexOf('\n'); at !== -1; at = bytes.indexOf('\n')) {
      yield { bytes: Buffer.concat([...rest, bytes.subarray(0, at + 1)]), isLast: false };
      rest = [];
      bytes = bytes.subarray(at + 1);
    }
    rest.push(bytes);
  }
  yield { bytes: Buffer.concat(rest), isLast: true };
}

/** @param bytes The first line. */
function encodingOf([first, second]: Buffer): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}

function decode(
  decoder: TextDecoder,
  bytes: Buffer,
  { isLast, number }: { isLast: boolean; number: number },
): string {
  let cause: unknown;
  try {
    const text = decoder.decode(bytes, { stream: !isLast });
    // Without a byte order mark, UTF-16 is valid UTF-8 with NUL characters.
    if (!text.includes('\0')) return text;
  } catch (error) {
    cause = error;
  }
  throw new CliError(
    `The inputs can't be read: line ${number} is not text in ${decoder.encoding.toUpperCase()}. Save the list as UTF-8, or ` +
      'as UTF-16 with a byte order mark.',
    EXIT.usage,
    { cause },
  );
}

function shown(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input);
}

/**
 * Reads which inputs the earlier jobs of a checkpoint had, to refuse other inputs. More inputs at the end are allowed.
 * With `--force`, one index may have had several inputs.
 */
export async function readInputCheck(checkpoint: string): Promise<CheckInput> {
  const known = new Map<number, unknown>();
  const others = new Set<string>();
  for await (const { index, input } of readRecords(checkpoint)) {
    if (known.has(index) && known.get(index) !== input) others.add(`${index} ${shown(input)}`);
    else known.set(index, input);
  }
  return (input, index) => {
    if (!known.has(index) || known.get(index) === input || others.has(`${index} ${input}`)) return;
    const [now, before] = [input, shown(known.get(index))].map((text) => excerpt(text, 100));
    throw new CliError(
      `These are not the inputs of ${checkpoint}: input ${index + 1} is ${now}, and was ${before}. Use the same inputs ` +
        '(more at the end are fine), or add --force to run all inputs that have no result.',
      EXIT.usage,
    );
  };
}
