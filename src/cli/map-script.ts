import { access, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MapOptions } from '../jobs/options.js';
import { isRecord, parseJson } from '../shared/json.js';
import { CliError, EXIT } from './errors.js';
import { isError } from '../shared/globals.js';

interface TaskScript {
  /** The default export. Its argument is typed by the library that the script uses. */
  readonly task: (task: unknown) => unknown;
  /** Other exports that are options of the job. */
  readonly options: Pick<MapOptions, 'shouldRetry' | 'contextOptions' | 'hostOf'>;
}

/** Loads a script, in JavaScript or TypeScript. */
export async function loadScript(path: string): Promise<TaskScript> {
  const file = resolve(path);
  await access(file).catch((cause: unknown) => {
    throw new CliError(`The script ${path} does not exist.`, EXIT.usage, { cause });
  });
  const module = await importScript(file).catch((cause: unknown) => {
    throw new CliError(describeFailure(path, cause), EXIT.usage, { cause });
  });
  // The exports of a CommonJS module are its default export.
  const {
    default: task,
    shouldRetry,
    contextOptions,
    hostOf,
  } = isRecord(module.default) ? module.default : module;
  if (typeof task !== 'function') {
    throw new CliError(
      `The script ${path} needs a function as its default export: export default async ({ input, page }) => …`,
      EXIT.usage,
    );
  }
  return { task, options: { shouldRetry, contextOptions, hostOf } } as TaskScript;
}

export type Module = Readonly<Record<string, unknown>>;

/** Imports TypeScript with tsx where it is installed, otherwise with Node, whose newer versions strip types. */
export async function importScript(file: string): Promise<Module> {
  const { href } = pathToFileURL(file);
  const tsx = /\.[cm]?ts$/.test(file) ? await findTsx(file) : undefined;
  if (tsx === undefined) return (await import(href)) as Module;
  const { tsImport } = (await import(tsx)) as { tsImport: (url: string, parent: string) => Promise<Module> };
  return tsImport(href, href);
}

/** Returns the URL of tsx's API, if tsx is installed for the script or in the working folder. */
async function findTsx(file: string): Promise<string | undefined> {
  try {
    const paths = [dirname(file), process.cwd()];
    // `resolve` would return the CommonJS build, which does not work from an ES module.
    const manifest = createRequire(file).resolve('tsx/package.json', { paths });
    const { exports } = parseJson(await readFile(manifest, 'utf8')) as { exports: TsxExports };
    return pathToFileURL(join(dirname(manifest), exports['./esm/api'].import.default)).href;
  } catch {
    return undefined;
  }
}

interface TsxExports {
  './esm/api': { import: { default: string } };
}

function describeFailure(path: string, cause: unknown): string {
  const { code, message } = isError(cause) ? (cause as NodeJS.ErrnoException) : { message: String(cause) };
  if (code !== 'ERR_UNKNOWN_FILE_EXTENSION') return `The script ${path} can't be loaded: ${message}`;
  return (
    `The script ${path} can't be loaded: ${message}. For TypeScript, use Node 22.18 or newer (this is ` +
    `${process.version}), or install tsx: npm install --save-dev tsx`
  );
}
