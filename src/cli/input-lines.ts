import type { Readable } from 'node:stream';
import { CliError, EXIT } from './errors.js';

/** A line of the inputs, without its line feed. */
export interface InputLine {
  readonly text: string;
  /** The number of the line, from 1. */
  readonly number: number;
}

/** Where the lines come from, for messages: the path of a file, or `stdin`. */
export type SourceName = string;

/** The error of a line that is no input: it ends the command with exit code 2. @param fault What is wrong, and what to do. */
export function lineError(name: SourceName, number: number, fault: string, cause?: unknown): CliError {
  const message = `The inputs can't be read: in ${name}, line ${number} ${fault}`;
  return new CliError(message, EXIT.usage, { cause });
}

/** Reads UTF-8, and UTF-16 with a byte order mark, as programs of Windows write it. */
export async function* linesOf(
  stream: Readable,
  name: SourceName,
): AsyncGenerator<InputLine, void, undefined> {
  let decoder: TextDecoder | undefined;
  let rest: string[] = [];
  let number = 1;
  for await (const { bytes, isLast } of byteLinesOf(stream)) {
    decoder ??= new TextDecoder(encodingOf(bytes), { fatal: true });
    const [first = '', ...others] = decode(decoder, bytes, isLast, (fault, cause) =>
      lineError(name, number, fault, cause),
    ).split('\n');
    rest.push(first);
    if (others.length === 0 && !isLast) continue;
    const lines = [rest.join(''), ...others];
    rest = isLast ? [] : [lines.pop()!];
    for (const text of lines) yield { text, number: number++ };
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
  isLast: boolean,
  errorOf: (fault: string, cause: unknown) => CliError,
): string {
  let cause: unknown;
  try {
    const text = decoder.decode(bytes, { stream: !isLast });
    // Without a byte order mark, UTF-16 is valid UTF-8 with NUL characters.
    if (!text.includes('\0')) return text;
  } catch (error) {
    cause = error;
  }
  const encoding = decoder.encoding.toUpperCase();
  const advice = 'Save the list as UTF-8, or as UTF-16 with a byte order mark.';
  throw errorOf(`is not text in ${encoding}. ${advice}`, cause);
}
