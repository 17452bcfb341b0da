import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  heavy,
  libraries,
  loadedPackages,
  parseModule,
  reach,
  readModules,
  type Module,
  type Modules,
} from './modules.js';

/**
 * Which folders of src/ each folder may import; everything else is forbidden. `entry` stands for the files directly in
 * src/. A file instead of a folder allows only that file.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  entry: ['entry', 'cli', 'fixtures', 'map', 'lease', 'local', 'connect', 'service', 'shared'],
  cli: ['map', 'lease', 'local', 'connect', 'service', 'shared'],
  fixtures: ['lease', 'service', 'shared'],
  map: ['lease', 'connect', 'service', 'shared'],
  lease: ['connect', 'service', 'shared'],
  connect: ['service', 'shared'],
  // The local pool is the other side of the API. It shares the wire objects and the checks of requests with the client.
  local: ['src/service/wire.ts', 'src/service/pool-options.ts', 'src/service/local-service.ts', 'shared'],
  service: ['shared'],
  shared: [],
};

/** Files that import a path which the user names at run time. */
const RUN_TIME_IMPORTS = ['src/cli/map-script.ts'];

/** Packages that the build bundles into our own files. */
const BUNDLED = ['valibot', 'leven', 'mediabunny'];

const MOST_LINES = 250;
const LEAST_LINES = 25;

const MOST_STATES = 5;
const STATE_FILE = 'src/shared/process-state.ts';
/** Not part of the client: a separate program, which runs in another process. */
const PROGRAM = 'src/service/release-process.ts';

const modules = readModules();
const imports = [...modules.values()].flatMap((module) => module.imports);
const { dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  'dependencies' | 'peerDependencies',
  Record<string, string>
>;

it('imports only what each folder is allowed to import', () => {
  expect(modules.size).toBeGreaterThan(20);
  expect(forbiddenImports(modules)).toEqual([]);
});

it('has no cycle of imports; type imports and import() count', () => {
  expect(cycles(modules)).toEqual([]);
});

it('has entry files that contain only "export … from"', () => {
  expect(entriesWithCode(modules)).toEqual([]);
});

it('loads no automation library and no heavy package with the root entry', () => {
  expect(loadedPackages(modules, 'src/index.ts', [...libraries, ...heavy])).toEqual([]);
});

it('imports only packages that package.json declares, and declares only packages that are imported', () => {
  const declared = Object.keys({ ...dependencies, ...peerDependencies });
  const loaded = imports.filter(({ to, kind }) => kind !== 'type' && !/^(src\/|node:|$)/.test(to));
  expect(loaded.filter(({ to }) => ![...declared, ...BUNDLED].includes(to))).toEqual([]);
  const used = new Set(imports.map(({ to }) => to));
  expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
});

it(`has source files of ${LEAST_LINES} to ${MOST_LINES} lines; entries may be shorter`, () => {
  const sizes = [...modules].map(([path, { text }]) => ({ path, lines: text.trimEnd().split('\n').length }));
  expect(sizes.filter(({ lines }) => lines > MOST_LINES)).toEqual([]);
  const isSmall = ({ path, lines }: { path: string; lines: number }) =>
    lines < LEAST_LINES && folderOf(path) !== 'entry';
  expect(sizes.filter(isSmall)).toEqual([]);
});

it(`has at most ${MOST_STATES} module-level mutable states in the client, all in one file`, () => {
  const client = [...modules].filter(
    ([path]) => !/^src\/(local|cli|fixtures)\//.test(path) && path !== PROGRAM,
  );
  const states = client.flatMap(([path, { body }]) => statesIn(body).map((name) => ({ path, name })));
  expect(states.filter(({ path }) => path === STATE_FILE).length).toBeLessThanOrEqual(MOST_STATES);
  expect(states.filter(({ path }) => path !== STATE_FILE)).toEqual([]);
});

it('detects a violation of each of these rules', () => {
  const broken = parse({
    'src/index.ts': "export * from './lease/a.js';\nexport const two = 2;",
    'src/lease/a.ts': "\nimport type { B } from './b.js';\nimport './c.js';",
    'src/lease/b.ts': "export const a = () => import('./a.js');\nimport(name);",
    'src/lease/c.ts': "import type { J } from 'jose';\nimport 'undici/x';\nconst later = () => import('ws');",
    'src/service/http.ts': "import type { Lease } from '../lease/a.js';\nimport './missing.js';",
    'src/local/pool.ts': "import '../service/http.js';",
    'src/new/a.ts': "import '../service/http.js';",
  });
  expect(forbiddenImports(broken)).toEqual([
    'src/lease/b.ts:2 imports a path that no check can read',
    'src/service/http.ts:1 imports src/lease/a.ts: service may import shared',
    'src/service/http.ts:2 imports src/service/missing.ts, which does not exist',
    'src/local/pool.ts:1 imports src/service/http.ts: local may import src/service/wire.ts, src/service/pool-options.ts, src/service/local-service.ts, shared',
    'src/new/a.ts:1 imports src/service/http.ts: new may import nothing',
  ]);
  expect(cycles(broken)).toEqual(['src/lease/a.ts:2 -> src/lease/b.ts:1 -> src/lease/a.ts']);
  expect(entriesWithCode(broken)).toEqual(['src/index.ts']);
  const chain = 'src/index.ts:1 -> src/lease/a.ts:3 -> src/lease/c.ts:2 -> undici';
  expect(loadedPackages(broken, 'src/index.ts', heavy)).toEqual([chain]);
  const states = 'let a; export const b = new Map<string, X>(), c: X[] = [], FIXED = new Set([1]), d = 1;';
  expect(statesIn(parseModule('src/a.ts', states).body)).toEqual(['a', 'b', 'c']);
  expect(() => parse({ 'src/a.ts': 'import {' })).toThrow('src/a.ts');
});

function parse(files: Record<string, string>): Modules {
  return new Map(Object.entries(files).map(([path, text]) => [path, parseModule(path, text)]));
}

/** The folder directly below src/ that a file belongs to. */
function folderOf(path: string): string {
  const [, folder, ...rest] = path.split('/');
  return rest.length === 0 ? 'entry' : folder!;
}

function forbiddenImports(modules: Modules): string[] {
  return [...modules].flatMap(([path, { imports }]) => {
    const folder = folderOf(path);
    const allowed = ALLOWED[folder] ?? [];
    return imports.flatMap(({ place, to }) => {
      if (to === '')
        return RUN_TIME_IMPORTS.includes(path) ? [] : [`${place} imports a path that no check can read`];
      if (!to.startsWith('src/')) return [];
      if (!modules.has(to)) return [`${place} imports ${to}, which does not exist`];
      if ([folderOf(to), to].some((one) => allowed.includes(one)) || folderOf(to) === folder) return [];
      return [`${place} imports ${to}: ${folder} may import ${allowed.join(', ') || 'nothing'}`];
    });
  });
}

/** One cycle for each file that reaches itself, without repetitions. */
function cycles(modules: Modules): string[] {
  const found = new Map<string, string>();
  for (const path of modules.keys()) {
    const chain = reach(modules, path, ['value', 'lazy', 'type']).get(path);
    if (chain === undefined) continue;
    const members = new Set(chain.split(' -> ').map((place) => place.split(':')[0]!));
    const key = [...modules.keys()].filter((file) => members.has(file)).join();
    if (!found.has(key)) found.set(key, chain + path);
  }
  return [...found.values()];
}

function entriesWithCode(modules: Modules): string[] {
  const entries = [...modules].filter(([path]) => folderOf(path) === 'entry');
  const hasCode = entries.filter(([, { body }]) =>
    body.some(
      (node) =>
        node.type !== 'ExportAllDeclaration' && !(node.type === 'ExportNamedDeclaration' && node.source),
    ),
  );
  return hasCode.map(([path]) => path);
}

/** Names of the variables at the top level that can change: `let`, and collections that start empty. */
function statesIn(body: Module['body']): string[] {
  return body.flatMap((node) => {
    const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : node;
    if (declaration?.type !== 'VariableDeclaration') return [];
    const { kind, declarations } = declaration;
    const changing = declarations.filter(({ init }) => {
      if (kind !== 'const' || (init?.type === 'ArrayExpression' && init.elements.length === 0)) return true;
      if (init?.type !== 'NewExpression' || init.arguments.length > 0) return false;
      return init.callee.type === 'Identifier' && /^(Weak)?(Map|Set)$/.test(init.callee.name);
    });
    return changing.map(({ id }) => (id.type === 'Identifier' ? id.name : '(pattern)'));
  });
}
