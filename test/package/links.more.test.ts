import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { outsideNpm } from './consumer.js';

let shipped: Map<string, string>;

beforeAll(async () => {
  const parameters = ['pack', '--ignore-scripts', '--dry-run', '--json'];
  const { stdout } = await promisify(execFile)('npm', parameters, { env: outsideNpm() });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const textOf = (path: string) => (path.endsWith('.md') ? readFileSync(path, 'utf8') : '');
  shipped = new Map(files.map(({ path }) => [path, textOf(path)]));
});

it('ships every file that a shipped guide links to, and every heading', () => {
  const guides = [...shipped].filter(([, text]) => text !== '');
  expect(guides.map(([path]) => path)).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md']));
  expect(guides.flatMap(([path, text]) => brokenLinks(path, text))).toEqual([]);
});

// Tests are not part of the package, so guides name them as code instead of links.
it('names only test files that exist', () => {
  const named = [...shipped.values()].flatMap((text) => text.match(/(?<=`)test\/[\w./-]+(?=`)/g) ?? []);
  expect(named).toContain('test/service/release.real.test.ts');
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});

it('detects a link to a missing file, and to a missing heading', () => {
  const text = '[a](examples/none.md), [b](README.md#no-such-heading), [c](examples/README.md)';
  expect(brokenLinks('README.md', text)).toEqual([
    'README.md: examples/none.md',
    'README.md: README.md#no-such-heading',
  ]);
});

/** Links to other sites are not checked. */
function brokenLinks(path: string, text: string): string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  const relative = links.filter((link) => !/^[a-z]+:/.test(link));
  return relative.filter((link) => !isShipped(path, link)).map((link) => `${path}: ${link}`);
}

function isShipped(path: string, link: string): boolean {
  const [file, heading] = link.split('#') as [string, string?];
  const target = shipped.get(file === '' ? path : posix.join(posix.dirname(path), file));
  return target !== undefined && (heading === undefined || headings(target).includes(heading));
}

/** The anchors that GitHub and npm give to headings. */
function headings(text: string): string[] {
  const titles = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase());
  return titles.map((title) => title.replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'));
}
