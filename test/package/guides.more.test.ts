import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { errorsOf, outsideNpm } from './consumer.js';

/** The files of the package, with the text of each guide. */
const shipped = await listPackage();
const guides = [...shipped].filter(([, text]) => text !== '');

it('ships every file that a shipped guide links to, and every heading', () => {
  expect(guides.map(([path]) => path)).toEqual(
    expect.arrayContaining(['README.md', 'CHANGELOG.md', 'skills/pooled-browser/SKILL.md']),
  );
  expect(guides.flatMap(([path, text]) => brokenLinks(path, text))).toEqual([]);
  const broken = '[a](examples/none.md), [b](README.md#no-such-heading), [c](examples/README.md)';
  expect(brokenLinks('README.md', broken)).toEqual(['examples/none.md', 'README.md#no-such-heading']);
});

// Tests are not part of the package, so guides name them as code instead of links.
it('names only test files and scripts that exist', () => {
  const text = guides.map(([, text]) => text).join('\n');
  const files = text.match(/(?<=`)test\/[\w./-]+(?=`)/g)!;
  expect(files.length).toBeGreaterThan(8);
  expect(files.filter((path) => !existsSync(path))).toEqual([]);
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object };
  const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});

it('has snippets that compile as complete programs, those of configurations also with a further option', async () => {
  // The guides in src/ are about parts of the code.
  const users = guides.filter(([path]) => !path.startsWith('src/'));
  const snippets = users.flatMap(([path, text]) => snippetsOf(path, text));
  expect(snippets.length).toBeGreaterThan(10);
  // An option that a user adds must not need other code: the type of a constant would be that of any string.
  const configured = snippets.filter(([, program]) => /pooledBrowser[^]* pool: '/.test(program));
  const extended = configured.map(
    ([name, program]) =>
      [`extended-${name}`, program.replace(" pool: '", " release: 'destroy', pool: '")] as const,
  );
  expect(extended.length).toBeGreaterThan(4);
  // Inside the repository, where `pooled-browser` is the built package.
  await mkdir('reports', { recursive: true });
  const folder = await mkdtemp(join('reports', 'snippets-'));
  const broken = ['broken.ts', 'export const title = await withPooledBrowser(pool, visit);'] as const;
  for (const [name, program] of [...snippets, ...extended, broken])
    await writeFile(join(folder, name), program);
  const compilerOptions = { allowJs: true, checkJs: true, noUnusedLocals: false };
  const tsconfig = { extends: '../../tsconfig.json', compilerOptions, include: ['*.ts', '*.js', '*.cjs'] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  const errors = await errorsOf(folder);
  await rm(folder, { recursive: true });
  expect(errors).toContainEqual(expect.stringMatching(/^broken\.ts.*'withPooledBrowser'/));
  expect(errors.filter((line) => !line.startsWith('broken.ts'))).toEqual([]);
});

async function listPackage(): Promise<Map<string, string>> {
  const parameters = ['pack', '--ignore-scripts', '--dry-run', '--json'];
  const { stdout } = await promisify(execFile)('npm', parameters, { env: outsideNpm() });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  return new Map(files.map(({ path }) => [path, path.endsWith('.md') ? readFileSync(path, 'utf8') : '']));
}

/** Links to other sites are not checked. */
function brokenLinks(path: string, text: string): string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
  return links.filter((link) => !/^[a-z]+:/.test(link) && !isShipped(path, link));
}

function isShipped(path: string, link: string): boolean {
  const [file, heading] = link.split('#') as [string, string?];
  const target = shipped.get(file === '' ? path : posix.join(posix.dirname(path), file));
  return target !== undefined && (heading === undefined || headings(target).includes(heading));
}

/** The anchors that GitHub and npm give to headings. */
function headings(text: string): string[] {
  const titles = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) => title!.toLowerCase());
  return titles.map((title) => title.replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'));
}

/** The ts and js blocks of a guide: every name is declared, and every import is from a package that exports it. */
function snippetsOf(guide: string, text: string): [name: string, program: string][] {
  return [...text.matchAll(/^```(ts|js)\n([\s\S]*?)^```$/gm)].map(([, language, program], at) => {
    const ending = program!.includes('require(') ? 'cjs' : language;
    return [`${guide.replace('.md', '').replaceAll('/', '-')}-${at + 1}.${ending}`, program!];
  });
}
