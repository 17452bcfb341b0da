import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { placeFile } from '../../src/features/files.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'names-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** The name under which a download with this suggested name is stored. */
async function place(name: string, content = name): Promise<string> {
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
  expect(await place(name)).toBe(name);
});

it.each([
  ['x'.repeat(300) + ' final.pdf', /^x{100,}\.\.\.x+ final\.pdf$/],
  ['x'.repeat(300) + ' final.tar.gz', /^x{100,}\.\.\.x+ final\.tar\.gz$/],
  ['日本語の報告書'.repeat(20) + '最終版.xlsx', /^日本語の報告書[^.]{20,}\.\.\.[^.]+最終版\.xlsx$/],
  ['e\u0301'.repeat(200) + '.txt', /^(e\u0301)+e?\.\.\.(e\u0301)+\.txt$/],
  ['notes. ' + 'y'.repeat(300), /^notes\. y+\.\.\.y+$/],
])('a name that no file system can hold loses its middle: %s', async (name, expected) => {
  const placed = await place(name);
  expect(placed).toMatch(expected);
  expect(Buffer.byteLength(placed)).toBeLessThanOrEqual(255);
  expect(Buffer.byteLength(placed)).toBeGreaterThan(230);
  // It exists: the next one needs room for another ending.
  const again = await place(name, 'another');
  expect(again).not.toBe(placed);
  expect(Buffer.byteLength(again)).toBeLessThanOrEqual(255);
  expect(await readdir(join(folder, 'placed'))).toHaveLength(2);
});

it.each([
  ['nul', 'nul-'],
  ['NUL.tar.gz', 'NUL-.tar.gz'],
  ['con.first.txt', 'con-.first.txt'],
  ['com¹ .txt', 'com¹-.txt'],
  ['console.txt', 'console.txt'],
  ['name. . ', 'name'],
  ['.profile', 'profile'],
  ['report .txt', 'report.txt'],
  ['../../etc/pass wd', 'etc-pass wd'],
  ['...', 'download'],
])('a name with a meaning in a path or on Windows loses it: %j', async (name, expected) => {
  expect(await place(name)).toBe(expected);
});
