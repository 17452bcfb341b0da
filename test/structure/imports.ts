import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** The paths of the TypeScript files of src/, or of a folder of it, without `src/` and their ending. */
export function sourcePaths(folder = ''): string[] {
  const names = readdirSync(`src/${folder}`, { recursive: true, encoding: 'utf8' });
  const paths = names.filter((name) => name.endsWith('.ts')).map((name) => name.slice(0, -3));
  return paths.map((path) => posix.join(folder, path.split(/[/\\]/).join('/')));
}

export function sourceText(path: string): string {
  return readFileSync(`src/${path}.ts`, 'utf8');
}

/** The files that a file imports, without their ending. All kinds of imports count, also those of types. */
export function targetsOf(path: string, text = sourceText(path)): string[] {
  const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)];
  return imports.map(([, specifier]) => posix.join(posix.dirname(path), specifier!));
}

/** The circles of imports among these files, each as the paths from a file to itself. */
export function circlesOf(paths: readonly string[]): string[][] {
  const all = new Set(paths);
  const seen = new Set<string>();
  const circles: string[][] = [];
  const visit = (path: string, from: readonly string[]): void => {
    if (from.includes(path)) circles.push([...from.slice(from.indexOf(path)), path]);
    if (seen.has(path)) return;
    seen.add(path);
    for (const to of targetsOf(path)) if (all.has(to)) visit(to, [...from, path]);
  };
  for (const path of paths) visit(path, []);
  return circles;
}

/** The folders of the features of a lease. */
export const FOLDERS = readdirSync('src/features').filter((name) => !name.endsWith('.ts'));
/** What they are called: the words of their folders, and their other names. */
const OF_FEATURES = [
  ...FOLDERS.filter((name) => name !== 'files').map((name) => name.replace(/s$/, '').replaceAll('-', '-?')),
  // Those of the folder `files`.
  'download',
  'upload',
  'recording',
  'screenshot',
  'exposed?-?(?:network|hosts?)',
  'nested',
  'start-?url',
];
/** Browsers and libraries have these, too: they name no feature beside them. */
const OF_BROWSERS = new Set(['artifact', 'download', 'upload', 'screenshot']);

/** The words of a file's code that name a feature of a lease, each once. */
export function namesOfFeatures(path: string): string[] {
  const names = path.startsWith('lease/') ? OF_FEATURES : OF_FEATURES.filter((one) => !OF_BROWSERS.has(one));
  const code = sourceText(path).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  const words = code.matchAll(new RegExp(`[\\w-]*(?:${names.join('|')})[\\w-]*`, 'gi'));
  return [...new Set([...words].map(([word]) => word))];
}
