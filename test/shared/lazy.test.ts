import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MissingLibraryError } from '../../src/index.js';
import { lazy } from '../../src/shared/lazy.js';
import { lazyLibrary } from '../../src/shared/lazy-library.js';
import { expectVersion, versionOf } from '../../src/shared/library-version.js';
import { rejection } from '../pool/support.js';

it('loads at the first call and only once, and again after a failure', async () => {
  let loads = 0;
  const load = lazy(async () => {
    if (++loads === 1) throw new Error('not installed');
    return loads;
  });
  expect(loads).toBe(0);
  await expect(load()).rejects.toThrow('not installed');
  expect(await Promise.all([load(), load()])).toEqual([2, 2]);
  expect(await load()).toBe(2);
});

it('returns a library, and names a missing one, with the error of the import as cause', async () => {
  let loads = 0;
  const library = lazyLibrary('playwright-core', async () => ++loads);
  expect([await library(), await library()]).toEqual([1, 1]);
  const cause = new Error('Cannot find package');
  const error = await rejection(lazyLibrary('playwright-core', () => Promise.reject(cause))());
  expect(error).toBeInstanceOf(MissingLibraryError);
  expect(error.message).toContain('npm install playwright-core');
  expect(error.cause).toMatchObject({ message: 'Cannot find package' });
});

it.each([
  ['puppeteer-core', '24.4.9'],
  ['playwright-core', '1.54.2'],
  ['ioredis', '4.31.0'],
  ['vitest', '2.1.9'],
])(
  'names the version of %s %s, which is too old, the oldest that works, and the command',
  (name, version) => {
    const load = () => expectVersion(name, version);
    expect(load).toThrow(MissingLibraryError);
    expect(load).toThrow(
      new RegExp(
        `^${name} ${version} is installed, but pooled-browser needs [\\d.]+ or newer.*npm install ${name}@latest$`,
      ),
    );
  },
);

it.each([
  ['puppeteer-core', '24.5.0'],
  ['puppeteer-core', '25.16.0'],
  ['playwright-core', '1.60.0-alpha-2026'],
  ['ioredis', '10.0.0'],
  ['another', '0.0.1'],
])('accepts %s %s', (name, version) => expect(() => expectVersion(name, version)).not.toThrow());

it.each([
  ['exports its package.json', {}],
  ['hides its package.json', { exports: { '.': './index.js' } }],
  ['has another file at this path', { exports: { './*': './lib/*' } }],
])('reads the version of a package that %s', (_what, manifest) => {
  const project = mkdtempSync(join(tmpdir(), 'project-'));
  const folder = join(project, 'node_modules', 'library');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'library', version: '1.2.3', ...manifest }),
  );
  expect(versionOf('library', join(project, 'index.js'))).toBe('1.2.3');
  expect(versionOf('another', join(project, 'index.js'))).toBeUndefined();
});
