import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, it } from 'vitest';

/** Folder of src/, and the folders and files that it may import. A file directly in src/ exports from all folders. */
const DIRECTION: Readonly<Record<string, readonly string[]>> = {
  cli: [
    'jobs',
    'calls',
    'features',
    'lease',
    'local',
    'recorder',
    'drivers',
    'clean',
    'wire',
    'pool',
    'services',
    'net',
    'shared',
  ],
  fixtures: ['calls', 'features', 'lease', 'drivers', 'clean', 'wire', 'pool', 'services', 'shared'],
  jobs: ['calls', 'features', 'lease', 'drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  calls: ['features', 'lease', 'drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  features: ['lease', 'drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  lease: ['drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  drivers: ['clean', 'wire', 'services', 'net', 'shared'],
  clean: ['wire', 'shared'],
  wire: ['net', 'shared'],
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
    'recorder',
    'wire',
    'shared',
  ],
  recorder: ['wire', 'shared'],
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

it('has no circle of imports, those of types and later ones included', () => {
  const paths = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.slice(0, -3).split(/[/\\]/).join('/'));
  const all = new Set(paths);
  const seen = new Set<string>();
  const visit = (path: string, from: readonly string[]): void => {
    expect(from, 'a circle').not.toContain(path);
    if (seen.has(path)) return;
    const text = readFileSync(`src/${path}.ts`, 'utf8');
    for (const to of targetsOf(path, text)) if (all.has(to)) visit(to, [...from, path]);
    seen.add(path);
  };
  for (const path of paths) visit(path, []);
  expect(seen.size).toBeGreaterThan(100);
});

const FOLDERS = readdirSync('src/features').filter((name) => !name.endsWith('.ts'));
/** What the features of a lease are called: the words of their folders, and their other names. */
const OF_FEATURES = new RegExp(
  [
    ...FOLDERS.filter((name) => name !== 'files').map((name) => name.replace(/s$/, '').replaceAll('-', '-?')),
    // Those of the folder `files`.
    'download',
    'upload',
    'recording',
    'screenshot',
    'expose',
    'nested',
    'start-?url',
  ].join('|'),
  'i',
);

it('has each folder of features/ in the list of features', () => {
  const list = readFileSync('src/features/features.ts', 'utf8');
  expect(FOLDERS.filter((name) => !list.includes(`from './${name}/`))).toEqual([]);
  expect(FOLDERS.length).toBeGreaterThan(5);
});

/** Browsers and libraries, too, have downloads, uploads and screenshots. */
const OF_FEATURES_ALONE = new RegExp(
  OF_FEATURES.source.replaceAll(/\b(artifact|download|upload|screenshot)\|/g, ''),
  'i',
);

it.each([
  ['lease', OF_FEATURES],
  ['drivers', OF_FEATURES_ALONE],
  ['clean', OF_FEATURES_ALONE],
  ['wire', OF_FEATURES_ALONE],
])('names no feature in the code of %s/', (folder, words) => {
  const names = readdirSync(`src/${folder}`).filter((name) => name.endsWith('.ts'));
  const named = names.flatMap((name) => {
    const text = readFileSync(`src/${folder}/${name}`, 'utf8');
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    return words.test(code) ? [`${name}: ${words.exec(code)![0]}`] : [];
  });
  expect(named).toEqual([]);
  expect(names.length).toBeGreaterThan(5);
});

it('imports no feature of a lease from another one', () => {
  const names = readdirSync('src/features', { recursive: true, encoding: 'utf8' });
  const paths = names.filter((name) => name.endsWith('.ts') && name.includes('/'));
  const wrong = paths.flatMap((name) => {
    const own = `features/${name.split('/')[0]}/`;
    const targets = targetsOf(`features/${name}`, readFileSync(`src/features/${name}`, 'utf8'));
    return targets.filter((to) => /^features\/[^/]+\//.test(to) && !to.startsWith(own));
  });
  expect(wrong).toEqual([]);
});

it('imports a feature of the local pool only in the list of features', () => {
  const folders = readFileSync('src/local/features.ts', 'utf8').matchAll(/from '\.\/([^/]+)\//g);
  const features = [...folders].map(([, folder]) => `local/${folder}/`);
  expect(features.length).toBeGreaterThan(0);
  const names = readdirSync('src/local', { recursive: true, encoding: 'utf8' });
  const paths = names.filter((name) => name.endsWith('.ts')).map((name) => `local/${name}`);
  const importers = paths.flatMap((path) => {
    const targets = targetsOf(path, readFileSync(`src/${path}`, 'utf8'));
    const others = features.filter((feature) => !path.startsWith(feature));
    return targets.some((to) => others.some((feature) => to.startsWith(feature))) ? [path] : [];
  });
  expect(importers).toEqual(['local/features.ts']);
});

it('has at most 40 files of tests that import what no entry exports', () => {
  const names = readdirSync('test', { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.test.ts'));
  const inner = files.filter((name) => /'(\.\.\/)+src\/[\w-]+\//.test(readFileSync(`test/${name}`, 'utf8')));
  expect(files.length).toBeGreaterThan(100);
  expect(inner.length, inner.join('\n')).toBeLessThanOrEqual(40);
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
  const targets = targetsOf(path, text);
  const allowed = [folder, ...(DIRECTION[folder] ?? [])];
  const wrong = targets.filter((to) => !allowed.includes(to) && !allowed.includes(to.split('/')[0]!));
  return wrong.map((to) => `${path} imports ${to}`);
}

/** The files that a file imports, without their ending. */
function targetsOf(path: string, text: string): string[] {
  const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)];
  return imports.map(([, specifier]) => posix.join(posix.dirname(path), specifier!));
}
