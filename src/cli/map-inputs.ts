import { access, open, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { CliError, EXIT } from './errors.js';

export interface InputLines extends Disposable {
  /** The lines that are not blank, read on demand. */
  readonly lines: AsyncIterable<string>;
  /** Number of lines, where it can be counted in advance. */
  readonly total: number | undefined;
}

/** Opens a file of inputs, or stdin. The signal ends the wait for the next line. */
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
  // Other kinds of files, such as a pipe of the shell, can be read only once.
  if (!stats.isFile()) return inputsOf(file.createReadStream(), undefined, signal);
  const total = await countLines(file);
  return inputsOf(file.createReadStream({ start: 0 }), total, signal);
}

function inputsOf(stream: Readable, total: number | undefined, signal: AbortSignal): InputLines {
  // The reader gets the error too; without a listener, an error between two reads would end the program.
  stream.on('error', () => {});
  addAbortSignal(signal, stream);
  // An open stdin would keep the program alive.
  return { lines: linesOf(stream), total, [Symbol.dispose]: () => void stream.destroy() };
}

async function countLines(file: FileHandle): Promise<number> {
  const lines = linesOf(file.createReadStream({ start: 0, autoClose: false }));
  let count = 0;
  while (!(await lines.next()).done) count++;
  return count;
}

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

/** Loads the default export of a script. Its argument is typed by the library that the script uses. */
export async function loadTask(path: string): Promise<(task: unknown) => unknown> {
  const file = resolve(path);
  await access(file).catch((cause: unknown) => {
    throw new CliError(`The script ${path} does not exist.`, EXIT.usage, { cause });
  });
  const script = (await import(pathToFileURL(file).href).catch((cause: unknown) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`The script ${path} can't be loaded: ${message}`, EXIT.usage, { cause });
  })) as { default?: unknown };
  if (typeof script.default === 'function') return script.default as (task: unknown) => unknown;
  throw new CliError(
    `The script ${path} needs a function as its default export: export default async ({ input, page }) => …`,
    EXIT.usage,
  );
}
