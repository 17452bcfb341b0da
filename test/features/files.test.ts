import { mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
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
  [`${LONG}.${LONG}`, `${LONG.slice(0, 126)}...${LONG.slice(0, 126)}`],
  ['nul', 'nul-'],
  ['NUL.tar.gz', 'NUL-.tar.gz'],
  ['con.first.txt', 'con-.first.txt'],
  ['com¹ .txt', 'com¹-.txt'],
  ['console.txt', 'console.txt'],
  ['report .txt', 'report.txt'],
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

/** The name under which a download with this suggested name is stored. */
async function place(folder: string, name: string, content = name): Promise<string> {
  const from = join(folder, 'received');
  await writeFile(from, content);
  const { path } = await placeFile(from, join(folder, 'placed'), { name, mustStay: false });
  expect(await readFile(path, 'utf8')).toBe(content);
  return basename(path);
}

const REPORT = 'Quarterly report of the north-western sales region, 2026, ';

it.each([
  `${REPORT}final version.pdf`,
  `${REPORT}draft version.pdf`,
  'backup of the whole site with all its pictures.tar.gz',
  'photo.original-camera-file',
  '日本語の報告書'.repeat(11) + '.xlsx',
  'a'.repeat(251) + '.txt',
  'v1.2.3 (copy).zip',
])('a file keeps its name, which a file system can hold: %s', async (name) => {
  const folder = await mkdtemp(join(tmpdir(), 'files-'));
  expect(await place(folder, name)).toBe(name);
});

it.each([
  ['x'.repeat(300) + ' final.pdf', /^x{100,}\.\.\.x+ final\.pdf$/],
  ['x'.repeat(300) + ' final.tar.gz', /^x{100,}\.\.\.x+ final\.tar\.gz$/],
  ['日本語の報告書'.repeat(20) + '最終版.xlsx', /^日本語の報告書[^.]{20,}\.\.\.[^.]+最終版\.xlsx$/],
  ['e\u0301'.repeat(200) + '.txt', /^(e\u0301)+e?\.\.\.(e\u0301)+\.txt$/],
  ['notes. ' + 'y'.repeat(300), /^notes\. y+\.\.\.y+$/],
])('a name that no file system can hold loses its middle: %s', async (name, expected) => {
  const folder = await mkdtemp(join(tmpdir(), 'files-'));
  const placed = await place(folder, name);
  expect(placed).toMatch(expected);
  expect(Buffer.byteLength(placed)).toBeLessThanOrEqual(255);
  expect(Buffer.byteLength(placed)).toBeGreaterThan(230);
  // It exists: the next one needs space for another ending.
  const again = await place(folder, name, 'another');
  expect(again).not.toBe(placed);
  expect(Buffer.byteLength(again)).toBeLessThanOrEqual(255);
  expect(await readdir(join(folder, 'placed'))).toHaveLength(2);
});
