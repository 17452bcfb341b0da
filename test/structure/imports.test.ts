import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  cycles,
  entriesWithCode,
  forbiddenArrows,
  loadedPackages,
  packageOf,
  undeclaredPackages,
} from './check-imports.js';
import { readImports } from './read-imports.js';
import { bundled, heavy, libraries } from './rules.js';
import { readSources } from './sources.js';

const sources = readSources();
const imports = readImports(sources);
const { dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  'dependencies' | 'peerDependencies',
  Record<string, string>
>;

it('finds the sources and their imports', () => {
  expect(sources.size).toBeGreaterThan(20);
  expect(imports.length).toBeGreaterThan(20);
});

it('has no import against the arrows', () => {
  expect(forbiddenArrows(imports, sources)).toEqual([]);
});

it('has no circle of imports', () => {
  expect(cycles(imports)).toEqual([]);
});

it('has entry files that hold exports only', () => {
  expect(entriesWithCode(sources)).toEqual([]);
});

it('loads no automation library with the root entry', () => {
  expect(loadedPackages(imports, 'src/index.ts', libraries)).toEqual([]);
});

it('loads nothing heavy with the root entry', () => {
  expect(loadedPackages(imports, 'src/index.ts', heavy)).toEqual([]);
});

it('imports no package that package.json does not declare', () => {
  expect(
    undeclaredPackages(imports, [...Object.keys({ ...dependencies, ...peerDependencies }), ...bundled]),
  ).toEqual([]);
});

it('has no dependency that nothing imports', () => {
  const used = new Set(imports.map(packageOf));
  expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
});
