import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, string | { default: string }>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: boolean }>;
};

it('each entry of src is an export of the package, and has API documentation', () => {
  const entries = readdirSync('src').filter((name) => name.endsWith('.ts'));
  const exported = Object.values(manifest.exports).flatMap((to) =>
    typeof to === 'string' ? [] : [to.default.replace('./dist/', '').replace('.js', '.ts')],
  );
  expect(exported.toSorted()).toEqual(entries.toSorted());
  const [, listed] = /entryPoints: \[([^\]]*)\]/.exec(readFileSync('src/typedoc.config.js', 'utf8'))!;
  const documented = [...listed!.matchAll(/'([\w-]+)'/g)].map(([, name]) => `${name}.ts`);
  expect(documented.toSorted()).toEqual(entries.toSorted());
});

it('each peer of any version is optional, and has an oldest version that is checked when it is loaded', () => {
  const { peerDependencies, peerDependenciesMeta } = manifest;
  const [, table] = /const OLDEST[^{]*\{([^}]*)\}/.exec(
    readFileSync('src/shared/library-version.ts', 'utf8'),
  )!;
  const peers = [...table!.matchAll(/^ *'?([\w@/-]+)'?: '/gm)].map(([, name]) => name!).toSorted();
  expect(peers.length).toBeGreaterThan(5);
  expect(peerDependencies).toEqual(Object.fromEntries(peers.map((name) => [name, '*'])));
  expect(peerDependenciesMeta).toEqual(Object.fromEntries(peers.map((name) => [name, { optional: true }])));
});
