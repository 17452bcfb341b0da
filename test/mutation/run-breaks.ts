import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { BREAKS, broken, type Break } from './breaks.js';

/** A break that makes the tests hang was noticed, too. In ms. */
const LONGEST_RUN = 240_000;

interface TestFile {
  readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  readonly message: string;
}

interface Noticed {
  readonly by: readonly string[];
  readonly milliseconds: number;
}

/**
 * `npm run breaks`, or `npm run breaks -- 3 17`: breaks one guarantee after another in a copy of the source, runs the tests that
 * should prove it, and prints which of them fail. Fails if a break stays unnoticed.
 */
const numbers = process.argv.slice(2).map(Number);
const chosen = numbers.length > 0 ? numbers.map((number) => BREAKS[number - 1]!) : BREAKS;

/** Without a break, no test may fail. */
const unbroken = broken(
  'nothing is broken',
  'index.ts',
  ['', ''],
  ...new Set(chosen.flatMap(({ tests }) => tests)),
);
const results = new Map<Break, Noticed>();
const queue = [unbroken, ...chosen];
await Promise.all([runAll(), runAll()]);
const { by: failures } = results.get(unbroken)!;
if (failures.length > 0) throw new Error(`These tests fail without a break, too: ${failures.join('; ')}`);

for (const one of chosen) {
  const { by, milliseconds } = results.get(one)!;
  const [first = 'NOTHING', ...others] = by;
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  console.log(
    `${BREAKS.indexOf(one) + 1}\t${one.what}\t${(milliseconds / 1000).toFixed(1)} s\t${first}${more}`,
  );
}
const missed = chosen.filter((one) => results.get(one)!.by.length === 0);
console.log(`${chosen.length - missed.length} of ${chosen.length} breaks were noticed.`);
process.exitCode = missed.length === 0 ? 0 : 1;

/** Takes breaks from the queue, in a copy of the project: the source itself stays as it is. */
async function runAll(): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), 'breaks-'));
  try {
    for (const name of ['src', 'test', 'package.json', 'tsconfig.json', 'README.md', 'CHANGELOG.md'])
      cpSync(name, join(copy, name), { recursive: true });
    for (const name of ['node_modules', 'dist'].filter((one) => existsSync(one)))
      symlinkSync(resolve(name), join(copy, name));
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { file, from, to } = next;
      const path = join(copy, 'src', file);
      const source = sourceOf(file);
      writeFileSync(
        path,
        source.replace(from, () => to),
      );
      results.set(next, await runTests(copy, next));
      writeFileSync(path, source);
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function sourceOf(file: string): string {
  return readFileSync(join('src', file), 'utf8');
}

/** Runs the tests of a break; returns the titles of those that fail. */
async function runTests(folder: string, { tests }: Break): Promise<Noticed> {
  const began = performance.now();
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const projects = [
    '--project',
    'unit',
    ...(tests.some((one) => one.endsWith('.real')) ? ['--project', 'real'] : []),
  ];
  const args = [
    'run',
    '--config',
    'test/vitest.config.ts',
    ...projects,
    ...tests.map((one) => `test/${one}`),
  ];
  const options = ['--reporter=json', `--outputFile=${report}`, '--testTimeout=20000', '--bail=3'];
  const vitest = resolve('node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, ...args, ...options], {
    cwd: folder,
    stdio: 'ignore',
    timeout: LONGEST_RUN,
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  const milliseconds = performance.now() - began;
  if (!existsSync(report)) return { by: code === null ? ['the tests did not end'] : [], milliseconds };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: readonly TestFile[] };
  if (testResults.length === 0) throw new Error(`No test file is named ${tests.join(' or ')}.`);
  const by = testResults.flatMap(({ assertionResults, message }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    const titles = failed.map(({ fullName }) => fullName.trim());
    // Without a failed test, the file could not be loaded.
    return titles.length === 0 && message ? [message] : titles;
  });
  return { by, milliseconds };
}
