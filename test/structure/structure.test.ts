import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { circlesOf, FOLDERS, namesOfFeatures, sourcePaths, targetsOf } from './imports.js';

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
  features: ['lease', 'live', 'recorder', 'drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  lease: ['drivers', 'clean', 'wire', 'pool', 'services', 'net', 'shared'],
  drivers: ['noted-calls', 'clean', 'wire', 'services', 'net', 'shared'],
  'noted-calls': ['shared'],
  clean: ['wire', 'shared'],
  wire: ['net', 'shared'],
  pool: ['services', 'net', 'shared'],
  services: ['shared'],
  net: ['shared'],
  // The other side of the API: it shares only the types of the API and the checks of requests with the client.
  local: [
    'services/kernel-api',
    'services/browser-service',
    'services/lease-mark',
    'pool/pool-options',
    'pool/local-service',
    'net/loopback-server',
    'net/accept-websocket',
    'live',
    'recorder',
    'wire',
    'shared',
  ],
  live: ['recorder', 'wire', 'net', 'shared'],
  recorder: ['wire', 'shared'],
  shared: [],
};

it('imports only in the direction that src/README.md shows', () => {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const paths = names.filter((name) => name.endsWith('.ts')).map((name) => name.split(/[/\\]/).join('/'));
  expect(paths.length).toBeGreaterThan(100);
  expect(paths.flatMap((path) => wrongImports(path, readFileSync(`src/${path}`, 'utf8')))).toEqual([]);
  const readme = readFileSync('src/README.md', 'utf8').matchAll(/^([\w-]+) +─▶ (.*)$/gm);
  const shown = Object.fromEntries(
    [...readme].map(([, from, to]) => [from, to!.replaceAll('.ts', '').split(', ')]),
  );
  expect({ ...shown, shared: [] }).toEqual(DIRECTION);
});

it('has no circle of imports, those of types and later ones included', () => {
  const paths = sourcePaths();
  expect(paths.length).toBeGreaterThan(100);
  expect(circlesOf(paths)).toEqual([]);
});

it('has each folder of features/ in the list of features', () => {
  const list = readFileSync('src/features/features.ts', 'utf8');
  expect(FOLDERS.filter((name) => !list.includes(`from './${name}/`))).toEqual([]);
  expect(FOLDERS.length).toBeGreaterThan(5);
});

it.each(['lease', 'drivers', 'clean', 'wire'])('names no feature in the code of %s/', (folder) => {
  const paths = sourcePaths(folder);
  expect(paths.flatMap((path) => namesOfFeatures(path).map((name) => `${path}: ${name}`))).toEqual([]);
  expect(paths.length).toBeGreaterThan(5);
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

it.each([
  "import type { Job } from '../jobs/job.js';",
  "const later = import('../index.js');",
  "export * from\n  '../lease/lease.js';",
])('detects a wrong import: %s', (text) => expect(wrongImports('pool/client.ts', text)).toHaveLength(1));

function wrongImports(path: string, text: string): string[] {
  const [folder = '', ...rest] = path.split('/');
  if (rest.length === 0) return [];
  const targets = targetsOf(path, text);
  const allowed = [folder, ...(DIRECTION[folder] ?? [])];
  const wrong = targets.filter((to) => !allowed.includes(to) && !allowed.includes(to.split('/')[0]!));
  return wrong.map((to) => `${path} imports ${to}`);
}
