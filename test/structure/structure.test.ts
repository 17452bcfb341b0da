import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, it } from 'vitest';

/** Folder of src/, and the folders and files that it may import. A file directly in src/ exports from all folders. */
const DIRECTION: Readonly<Record<string, readonly string[]>> = {
  cli: ['jobs', 'calls', 'features', 'lease', 'local', 'connect', 'pool', 'services', 'net', 'shared'],
  fixtures: ['calls', 'features', 'lease', 'connect', 'pool', 'services', 'shared'],
  jobs: ['calls', 'features', 'lease', 'connect', 'pool', 'services', 'net', 'shared'],
  calls: ['features', 'lease', 'connect', 'pool', 'services', 'net', 'shared'],
  features: ['lease', 'connect', 'pool', 'services', 'net', 'shared'],
  lease: ['calls', 'features', 'connect', 'pool', 'services', 'net', 'shared'],
  connect: ['features', 'services', 'net', 'shared'],
  pool: ['services', 'net', 'shared'],
  services: ['shared'],
  net: ['shared'],
  // The other side of the API: it shares only the types of the API and the checks of requests with the client.
  local: [
    'services/kernel-api',
    'services/browser-service',
    'pool/pool-options',
    'pool/local-service',
    'net/loopback-server',
    'shared',
  ],
  shared: [],
};

it('imports only in the direction that src/README.md shows', () => {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const paths = names.filter((name) => name.endsWith('.ts')).map((name) => name.split(/[/\\]/).join('/'));
  expect(paths.length).toBeGreaterThan(100);
  expect(paths.flatMap((path) => wrongImports(path, readFileSync(`src/${path}`, 'utf8')))).toEqual([]);
  const readme = readFileSync('src/README.md', 'utf8').matchAll(/^(\w+) +─▶ (.*)$/gm);
  const shown = Object.fromEntries(
    [...readme].map(([, from, to]) => [from, to!.replaceAll('.ts', '').split(', ')]),
  );
  expect({ ...shown, shared: [] }).toEqual(DIRECTION);
});

it.each([
  "import type { Job } from '../jobs/job.js';",
  "const later = import('../index.js');",
  "export * from\n  '../lease/lease.js';",
])('detects a wrong import: %s', (text) => expect(wrongImports('pool/client.ts', text)).toHaveLength(1));

/** All kinds of imports count, also those of types. */
function wrongImports(path: string, text: string): string[] {
  const [folder = '', ...rest] = path.split('/');
  if (rest.length === 0) return [];
  const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)];
  const targets = imports.map(([, specifier]) => posix.join(posix.dirname(path), specifier!));
  const allowed = [folder, ...(DIRECTION[folder] ?? [])];
  const wrong = targets.filter((to) => !allowed.includes(to) && !allowed.includes(to.split('/')[0]!));
  return wrong.map((to) => `${path} imports ${to}`);
}
