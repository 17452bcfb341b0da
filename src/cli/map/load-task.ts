import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

/** A task of any library: what it is called with is between it and the library. */
export type Task = (task: unknown) => unknown;

/** The default export of a module. */
export async function loadTask(path: string): Promise<Task> {
  const file = resolve(path);
  await access(file).catch((cause: unknown) => {
    throw new CliError(`There is no script ${path}.`, EXIT.usage, { cause });
  });
  const script = await load(file, path);
  if (typeof script.default === 'function') return script.default as Task;
  throw new CliError(
    `${path} has no default export that is a function: export default async ({ input, page }) => …`,
    EXIT.usage,
  );
}

async function load(file: string, path: string): Promise<{ default?: unknown }> {
  try {
    return (await import(pathToFileURL(file).href)) as { default?: unknown };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${path} can't be loaded: ${message}`, EXIT.usage, { cause });
  }
}
