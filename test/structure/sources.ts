import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { Sources } from './read-imports.js';

/** All of src/, by path from the repository's root. */
export function readSources(): Sources {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const paths = names.map((name) => posix.join('src', name)).sort();
  return new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
}
