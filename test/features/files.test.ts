import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { placeFile } from '../../src/features/files.js';

const LONG = 'x'.repeat(300);

it.each([
  ['report.pdf', 'report.pdf'],
  ['Übersicht 2026 (final).tar.gz', 'Übersicht 2026 (final).tar.gz'],
  ['../../etc/passwd', 'etc-passwd'],
  ['..\\..\\boot.ini', 'boot.ini'],
  ['.bashrc', 'bashrc'],
  ['-rf', 'rf'],
  ['a\u0000b\u001B[31m\u202Efdp.exe', 'a-b-31m-fdp.exe'],
  ['x; rm -rf $(HOME) `id`.sh', 'x- rm -rf -(HOME) -id-.sh'],
  ['CON.txt', 'CON-.txt'],
  ['dots...', 'dots'],
  ['', 'download'],
  ['///', 'download'],
  [`${LONG}.${LONG}`, `${LONG.slice(0, 40)}.${LONG.slice(0, 9)}`],
])('saves a download with the suggested name %j as %j', async (name, expected) => {
  const folder = await mkdtemp(join(tmpdir(), 'files-'));
  const from = join(folder, 'from');
  await writeFile(from, 'content', { mode: 0o644 });
  const { path, size } = await placeFile(from, join(folder, 'new'), { name, mustStay: false });
  expect([dirname(path), basename(path), size]).toEqual([join(folder, 'new'), expected, 7]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await expect(stat(from)).rejects.toThrow('ENOENT');
});

it.each([true, false])('never replaces another file (mustStay: %s)', async (mustStay) => {
  const folder = await mkdtemp(join(tmpdir(), 'files-'));
  const place = async (content: string) => {
    const from = join(folder, `from-${content}`);
    await writeFile(from, content);
    return placeFile(from, folder, { name: 'a.txt', mustStay });
  };
  const placed = await Promise.all(['one', 'two', 'three'].map(place));
  const contents = await Promise.all(placed.map(({ path }) => readFile(path, 'utf8')));
  expect(contents).toEqual(['one', 'two', 'three']);
});
