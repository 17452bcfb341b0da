import { open, type FileHandle } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

export interface InputLines extends Disposable {
  /** Read as they are asked for. */
  readonly lines: AsyncIterable<string>;
  /** How many there are, where that can be known before. */
  readonly total: number | undefined;
}

/** Opens a file of inputs, or stdin. The signal ends the wait for the next one. */
export async function openInputs(path: string | undefined, signal: AbortSignal): Promise<InputLines> {
  if (path === undefined || path === '-') return inputsOf(process.stdin, undefined, signal);
  const file = await open(path).catch((cause: unknown) => {
    throw new CliError(`The inputs can't be read: ${(cause as Error).message}.`, EXIT.usage, { cause });
  });
  const stats = await file.stat();
  if (stats.isDirectory()) {
    await file.close();
    throw new CliError(`The inputs can't be read: ${path} is a folder.`, EXIT.usage);
  }
  // What is no plain file, such as a pipe of the shell, can be read but once.
  if (!stats.isFile()) return inputsOf(file.createReadStream(), undefined, signal);
  const total = await countLines(file);
  return inputsOf(file.createReadStream({ start: 0 }), total, signal);
}

function inputsOf(stream: Readable, total: number | undefined, signal: AbortSignal): InputLines {
  // Whoever reads hears of it; an error while nobody does would end the program.
  stream.on('error', () => {});
  addAbortSignal(signal, stream);
  return {
    lines: linesOf(stream),
    total,
    // An open stdin would keep the program alive.
    [Symbol.dispose]: () => void stream.destroy(),
  };
}

async function countLines(file: FileHandle): Promise<number> {
  const lines = linesOf(file.createReadStream({ start: 0, autoClose: false }));
  let count = 0;
  while (!(await lines.next()).done) count++;
  return count;
}

/** The lines that are not blank. */
async function* linesOf(stream: Readable): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') yield line.trim();
  }
  rest += decoder.decode();
  if (rest.trim() !== '') yield rest.trim();
}
