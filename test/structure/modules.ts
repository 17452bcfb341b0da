import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync } from 'oxc-parser';

/** Optional libraries and test runners: only the entry that is named after one of them may load it. */
export const libraries = [
  'playwright-core',
  'puppeteer-core',
  'chromium-bidi',
  '@playwright/test',
  'vitest',
  'bullmq',
  'ioredis',
] as const;

/** Packages that take tens of milliseconds to load: the root entry must not load them. */
export const heavy = ['undici', 'ws', 'jose', 'commander'] as const;

/** One import, re-export or `import()`. */
export interface Import {
  /** The importing file and its line: `src/lease/lease.ts:7`. */
  place: string;
  /** The imported file (`src/lease/run.ts`), package (`@scope/name`), Node module (`node:fs`), or `''` if unreadable. */
  to: string;
  /** `value` loads together with its importer; `lazy` is an `import()`; `type` never loads. */
  kind: 'value' | 'lazy' | 'type';
}

export interface Module {
  text: string;
  imports: Import[];
  /** Statements at the top level of the file. */
  body: ReturnType<typeof parseSync>['program']['body'];
}

/** Files by their path from the root of the repository. */
export type Modules = ReadonlyMap<string, Module>;

/** All files of src/. */
export function readModules(): Modules {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const paths = names.map((name) => posix.join('src', name)).sort();
  return new Map(paths.map((path) => [path, parseModule(path, readFileSync(path, 'utf8'))]));
}

export function parseModule(path: string, text: string): Module {
  const { errors, module, program } = parseSync(path, text);
  // A file that cannot be parsed must not look like a file without imports.
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const toImport = (kind: Import['kind'], start: number, specifier: string): Import => ({
    place: `${path}:${text.slice(0, start).split('\n').length}`,
    to: resolve(path, specifier),
    kind,
  });
  const kindOf = (entries: readonly { isType: boolean }[]) =>
    entries.length > 0 && entries.every(({ isType }) => isType) ? 'type' : 'value';
  const imports = [
    ...module.staticImports.map(({ start, entries, moduleRequest }) =>
      toImport(kindOf(entries), start, moduleRequest.value),
    ),
    ...module.staticExports.flatMap(({ start, entries }) => {
      const specifier = entries[0]?.moduleRequest?.value;
      return specifier === undefined ? [] : [toImport(kindOf(entries), start, specifier)];
    }),
    ...module.dynamicImports.map(({ start, moduleRequest }) => {
      const specifier = /^(['"])(.*)\1$/.exec(text.slice(moduleRequest.start, moduleRequest.end))?.[2];
      return toImport('lazy', start, specifier ?? '');
    }),
  ];
  return { text, imports, body: program.body };
}

function resolve(from: string, specifier: string): string {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** What a file imports, directly and through other files, each with the shortest chain of imports that leads there. */
export function reach(modules: Modules, from: string, kinds: readonly Import['kind'][]): Map<string, string> {
  const chains = new Map<string, string>();
  const queue: [file: string, chain: string][] = [[from, '']];
  for (const [file, chain] of queue) {
    for (const { place, to, kind } of modules.get(file)?.imports ?? []) {
      if (!kinds.includes(kind) || chains.has(to)) continue;
      chains.set(to, `${chain}${place} -> `);
      queue.push([to, chains.get(to)!]);
    }
  }
  return chains;
}

/** The packages among these that load together with an entry, each with the chain of imports that leads there. */
export function loadedPackages(modules: Modules, entry: string, packages: readonly string[]): string[] {
  const reached = [...reach(modules, entry, ['value'])];
  return reached.flatMap(([to, chain]) => (packages.includes(to) ? [chain + to] : []));
}
