import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const examples = readdirSync('examples', { encoding: 'utf8', recursive: true });
const GUIDES = [
  'README.md',
  ...examples.filter((path) => path.endsWith('.md')).map((path) => join('examples', path)),
];

/** Complete programs: every name is declared, and every import is from a package that exports it. */
const snippets = new Map(GUIDES.flatMap((guide) => extract(guide, readFileSync(guide, 'utf8'))));

let folder: string;
let complaints: string[];

beforeAll(async () => {
  // Inside the repository, where `pooled-browser` is the built package.
  await mkdir('reports', { recursive: true });
  folder = await mkdtemp(join('reports', 'snippets-'));
  for (const [name, text] of snippets) await writeFile(join(folder, name), text);
  await writeFile(join(folder, 'broken.ts'), 'export const title = await withPooledBrowser(pool, visit);');
  complaints = await compile(folder);
});

afterAll(() => rm(folder, { recursive: true }));

it('finds the snippets of the README and of the guides', () => {
  const names = [...snippets.keys()].join(' ');
  expect(names).toMatch(/^README-1\.ts /);
  expect(names).toMatch(/questions-1\.cjs/);
  expect(names).toMatch(/examples-vitest-README-1\.ts/);
});

it.each([...snippets.keys()])('type-checks as a complete program: %s', (name) => {
  expect(complaints.filter((line) => line.includes(`/${name}(`))).toEqual([]);
});

it('detects an undeclared name', () => {
  expect(complaints).toContainEqual(expect.stringMatching(/broken\.ts.*'withPooledBrowser'/));
});

/** Returns the ts and js blocks of a guide as files. */
function extract(guide: string, text: string): [name: string, program: string][] {
  const blocks = [...text.matchAll(/^```(ts|js)\n([\s\S]*?)^```$/gm)];
  return blocks.map(([, language, program = ''], at) => {
    const ending = language === 'js' && program.includes('require(') ? 'cjs' : language;
    return [`${guide.replace('.md', '').replaceAll(/[/\\]/g, '-')}-${at + 1}.${ending}`, program];
  });
}

/** Returns the compiler's errors in the files of a folder. */
async function compile(folder: string): Promise<string[]> {
  const compilerOptions = { allowJs: true, checkJs: true, noUnusedLocals: false, noImplicitAny: true };
  const tsconfig = { extends: '../../tsconfig.json', compilerOptions, include: ['*.ts', '*.js', '*.cjs'] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  const tsc = join(createRequire(import.meta.url).resolve('@typescript/native/package.json'), '../bin/tsc');
  const run = promisify(execFile)(process.execPath, [tsc, '-p', folder, '--pretty', 'false']);
  const output = await run.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  return output.split('\n').filter((line) => /\berror TS/.test(line));
}
