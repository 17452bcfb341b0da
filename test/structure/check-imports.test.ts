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
    'src/run/a.ts': [
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
    [2, 'value', 'src/run/b.ts'],
    [3, 'value', 'src/run/c.ts'],
    [4, 'type', 'src/run/d.ts'],
    [5, 'value', 'src/run/e.ts'],
    [6, 'type', 'src/run/f.ts'],
    [7, 'lazy', 'playwright-core/lib/x.js'],
    [8, 'lazy', '(expression)'],
  ]);
});

it('refuses a file that it cannot parse', () => {
  expect(() => read({ 'src/run/a.ts': 'import {' })).toThrow('src/run/a.ts');
});

it('names file, line and rule of a forbidden arrow, of a type too', () => {
  const { imports, sources } = read({
    'src/service/http.ts': "\nimport type { Lease } from '../run/lease.js';",
    'src/run/lease.ts': "import '../service/http.js';",
    'src/local/server.ts': "import '../service/wire.js';\nimport '../service/http.js';",
    'src/service/wire.ts': '',
    'src/internal/json.ts': "import '../errors/one.js';",
    'src/errors/one.ts': "export {} from '../index.js';",
    'src/index.ts': "export * from './errors/one.js';",
    'src/new/a.ts': "import '../errors/one.js';",
    'src/cli/main.ts': "await import('./lost.js');\nimport(process.env.X!);",
  });
  expect(forbiddenArrows(imports, sources)).toEqual([
    'src/service/http.ts:2 imports ../run/lease.js: service may import errors, internal',
    'src/local/server.ts:2 imports ../service/http.js: local may import service/wire.ts, errors, internal',
    'src/internal/json.ts:1 imports ../errors/one.js: internal may import nothing of ours',
    'src/errors/one.ts:1 imports ../index.js: errors may import internal',
    'src/new/a.ts:1 imports ../errors/one.js: the folder new/ has no arrows in test/structure/rules.ts',
    'src/cli/main.ts:1 imports ./lost.js: there is no src/cli/lost.ts',
    'src/cli/main.ts:2 imports (expression): import() takes a literal, so that a check can read it',
  ]);
});

it('finds circles, through types, lazy imports and a file itself', () => {
  const { imports } = read({
    'src/run/a.ts': "import './b.js';",
    'src/run/b.ts': "import './d.js';\nimport type { C } from './c.js';",
    'src/run/c.ts': "export const a = () => import('./a.js');",
    'src/run/d.ts': '',
    'src/run/self.ts': "export * from './self.js';",
  });
  expect(cycles(imports)).toEqual([
    'circle: src/run/a.ts:1 -> src/run/b.ts:2 -> src/run/c.ts:1 -> src/run/a.ts',
    'circle: src/run/self.ts:1 -> src/run/self.ts',
  ]);
});

it('sees a package that loads with an entry, and not one that loads later or never', () => {
  const { imports } = read({
    'src/index.ts': "export * from './run/a.js';",
    'src/run/a.ts': "import type { P } from 'puppeteer-core';\nimport './b.js';\nawait import('./c.js');",
    'src/run/b.ts': "import { type B } from 'playwright-core/types';",
    'src/run/c.ts': "import 'puppeteer-core';",
  });
  expect(loadedPackages(imports, 'src/index.ts', ['playwright-core', 'puppeteer-core'])).toEqual([
    'src/index.ts:1 -> src/run/a.ts:2 -> src/run/b.ts:1 -> playwright-core/types',
  ]);
});

it('sees code in an entry file', () => {
  const { sources } = read({
    'src/index.ts': "export * from './run/a.js';\nexport type { B } from './run/a.js';",
    'src/local.ts': "export * from './run/a.js';\nexport const two = 2;",
    'src/vitest.ts': "import { a } from './run/a.js';\nexport { a };",
    'src/run/a.ts': 'export const a = 1;',
  });
  expect(entriesWithCode(sources)).toEqual([
    'src/local.ts:2 is no "export … from": an entry file holds exports only',
    'src/vitest.ts:1 is no "export … from": an entry file holds exports only',
  ]);
});

it('sees a package that package.json does not declare', () => {
  const { imports } = read({
    'src/run/a.ts':
      "import 'undici';\nimport '@a/b/c';\nimport 'node:fs';\nimport 'fs';\nimport type {} from 'x';",
  });
  expect(undeclaredPackages(imports, ['undici'])).toEqual([
    'src/run/a.ts:2 imports @a/b/c: neither a dependency nor a peer in package.json',
    'src/run/a.ts:4 imports fs: neither a dependency nor a peer in package.json',
  ]);
});

function read(files: Record<string, string>) {
  const sources = new Map(Object.entries(files));
  return { sources, imports: readImports(sources) };
}
