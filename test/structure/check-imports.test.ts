import { expect, it } from 'vitest';
import {
  cycles,
  entriesWithCode,
  forbiddenArrows,
  loadedPackages,
  undeclaredPackages,
} from './check-imports.js';
import { readImports } from './read-imports.js';

it('reads every form of import, with its line and whether it loads', () => {
  const imports = read({
    'src/lease/a.ts': [
      "import type { T } from '../service/wire.js';",
      "import { type U } from './b.js';",
      "export * from './c.js';",
      "export type { V } from './d.js';",
      "import './e.js';",
      "type W = import('./f.js').W;",
      "export const lazy = () => import('playwright-core/lib/x.js');",
      'export const hidden = (name: string) => import(name);',
      '// import "./no.js"',
      'export const text = `import "./no.js"`;',
    ].join('\n'),
  }).imports;
  expect(imports.map(({ line, kind, to, specifier }) => [line, kind, to ?? specifier])).toEqual([
    [1, 'type', 'src/service/wire.ts'],
    [2, 'value', 'src/lease/b.ts'],
    [3, 'value', 'src/lease/c.ts'],
    [4, 'type', 'src/lease/d.ts'],
    [5, 'value', 'src/lease/e.ts'],
    [6, 'type', 'src/lease/f.ts'],
    [7, 'lazy', 'playwright-core/lib/x.js'],
    [8, 'lazy', '(expression)'],
  ]);
});

it('refuses a file that it cannot parse', () => {
  expect(() => read({ 'src/lease/a.ts': 'import {' })).toThrow('src/lease/a.ts');
});

it('names file, line and rule of a forbidden arrow, of a type too', () => {
  const { imports, sources } = read({
    'src/service/http.ts': "\nimport type { Lease } from '../lease/lease.js';",
    'src/lease/lease.ts': "import '../service/http.js';",
    'src/local/server.ts': "import '../service/wire.js';\nimport '../service/http.js';",
    'src/service/wire.ts': '',
    'src/shared/json.ts': "import '../service/wire.js';",
    'src/service/one.ts': "export {} from '../index.js';",
    'src/index.ts': "export * from './service/one.js';",
    'src/new/a.ts': "import '../service/one.js';",
    'src/cli/main.ts': "await import('./lost.js');\nimport(process.env.X!);",
  });
  expect(forbiddenArrows(imports, sources)).toEqual([
    'src/service/http.ts:2 imports ../lease/lease.js: service may import shared',
    'src/local/server.ts:2 imports ../service/http.js: local may import service/wire.ts, shared',
    'src/shared/json.ts:1 imports ../service/wire.js: shared may import nothing of ours',
    'src/service/one.ts:1 imports ../index.js: service may import shared',
    'src/new/a.ts:1 imports ../service/one.js: the folder new/ has no arrows in test/structure/rules.ts',
    'src/cli/main.ts:1 imports ./lost.js: there is no src/cli/lost.ts',
    'src/cli/main.ts:2 imports (expression): import() takes a literal, so that a check can read it',
  ]);
});

it('finds circles, through types, lazy imports and a file itself', () => {
  const { imports } = read({
    'src/lease/a.ts': "import './b.js';",
    'src/lease/b.ts': "import './d.js';\nimport type { C } from './c.js';",
    'src/lease/c.ts': "export const a = () => import('./a.js');",
    'src/lease/d.ts': '',
    'src/lease/self.ts': "export * from './self.js';",
  });
  expect(cycles(imports)).toEqual([
    'circle: src/lease/a.ts:1 -> src/lease/b.ts:2 -> src/lease/c.ts:1 -> src/lease/a.ts',
    'circle: src/lease/self.ts:1 -> src/lease/self.ts',
  ]);
});

it('sees a package that loads with an entry, and not one that loads later or never', () => {
  const { imports } = read({
    'src/index.ts': "export * from './lease/a.js';",
    'src/lease/a.ts': "import type { P } from 'puppeteer-core';\nimport './b.js';\nawait import('./c.js');",
    'src/lease/b.ts': "import { type B } from 'playwright-core/types';",
    'src/lease/c.ts': "import 'puppeteer-core';",
  });
  expect(loadedPackages(imports, 'src/index.ts', ['playwright-core', 'puppeteer-core'])).toEqual([
    'src/index.ts:1 -> src/lease/a.ts:2 -> src/lease/b.ts:1 -> playwright-core/types',
  ]);
});

it('sees code in an entry file', () => {
  const { sources } = read({
    'src/index.ts': "export * from './lease/a.js';\nexport type { B } from './lease/a.js';",
    'src/local.ts': "export * from './lease/a.js';\nexport const two = 2;",
    'src/vitest.ts': "import { a } from './lease/a.js';\nexport { a };",
    'src/lease/a.ts': 'export const a = 1;',
  });
  expect(entriesWithCode(sources)).toEqual([
    'src/local.ts:2 is no "export … from": an entry file holds exports only',
    'src/vitest.ts:1 is no "export … from": an entry file holds exports only',
  ]);
});

it('sees a package that package.json does not declare', () => {
  const { imports } = read({
    'src/lease/a.ts':
      "import 'undici';\nimport '@a/b/c';\nimport 'node:fs';\nimport 'fs';\nimport type {} from 'x';",
  });
  expect(undeclaredPackages(imports, ['undici'])).toEqual([
    'src/lease/a.ts:2 imports @a/b/c: neither a dependency nor a peer in package.json',
    'src/lease/a.ts:4 imports fs: neither a dependency nor a peer in package.json',
  ]);
});

function read(files: Record<string, string>) {
  const sources = new Map(Object.entries(files));
  return { sources, imports: readImports(sources) };
}
