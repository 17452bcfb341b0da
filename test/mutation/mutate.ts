import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * `npm run mutate`, `npm run mutate lease`, or `npm run mutate src/lease/link.ts src/pool/client.ts`: changes the code
 * of the files that decide about leases, or of these folders or files, in every way that Stryker supports, one change at a
 * time, and lists the changes that no test detects. Arguments that begin with `--` go to Stryker: `--incremental` repeats
 * only the changes that the last run did not detect.
 */
const DEFAULT = [
  ...['acquire-attempts', 'held-browser', 'hooks', 'lease', 'link', 'open-lease'].map(
    (name) => `src/lease/${name}.ts`,
  ),
  ...['release', 'pending-releases', 'grant', 'browser-pool'].map((name) => `src/pool/${name}.ts`),
];
const FOLDERS = [
  'shared',
  'net',
  'services',
  'pool',
  'wire',
  'clean',
  'drivers',
  'lease',
  'features',
  'calls',
  'jobs',
];

interface Position {
  line: number;
  column: number;
}

interface Mutant {
  file: string;
  status: string;
  mutatorName: string;
  replacement?: string;
  location: { start: Position; end: Position };
}

const args = process.argv.slice(2);
const options = args.filter((argument) => argument.startsWith('--'));
const named = args.filter((argument) => !argument.startsWith('--'));
const chosen = named.length > 0 ? named : DEFAULT;
const unknown = chosen.filter(
  (name) => !FOLDERS.includes(name) && !FOLDERS.includes(name.split('/')[1] ?? ''),
);
if (unknown.length > 0)
  throw new Error(`Neither a folder of ${FOLDERS.join(', ')} nor a file in one: ${unknown}`);

const lines: string[] = [];
let [all, noticed] = [0, 0];
for (const folder of FOLDERS) {
  const isWhole = chosen.includes(folder);
  const files = isWhole ? [`src/${folder}/**/*.ts`] : chosen.filter((name) => name.split('/')[1] === folder);
  if (files.length > 0) mutate(folder, files);
}
console.log(lines.join('\n'));
printScore('all', noticed, all);

/** Tries every change with the fast tests, then those that they do not detect with all tests. */
function mutate(folder: string, files: string[]): void {
  const mutants = runStryker(folder, files, 'fast');
  const undetected = mutants.filter(isUndetected);
  const ranges = undetected.map(({ file, location: { start, end } }) => {
    // Columns begin with 0 on Stryker's command line, and with 1 in its report.
    return `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;
  });
  const again = undetected.length > 0 ? runStryker(folder, ranges, 'all').filter(isUndetected) : [];
  // A range also holds the changes of its parts.
  const survivors = undetected.filter((mutant) => again.some((other) => isSame(mutant, other)));
  for (const { file, status, mutatorName, replacement = '', location } of survivors)
    lines.push(
      `${file}:${location.start.line} ${status}: ${mutatorName} ${replacement.replaceAll(/\s+/g, ' ').slice(0, 80)}`,
    );
  printScore(folder, mutants.length - survivors.length, mutants.length);
  all += mutants.length;
  noticed += mutants.length - survivors.length;
}

function runStryker(folder: string, files: string[], tests: 'fast' | 'all'): Mutant[] {
  const { status } = spawnSync(
    'npx',
    ['--no-install', 'stryker', 'run', 'test/mutation/stryker.config.js', ...options],
    {
      env: { ...process.env, MUTATED_FOLDER: folder, MUTATED_FILES: files.join(), MUTATION_TESTS: tests },
      stdio: 'inherit',
    },
  );
  if (status !== 0) process.exit(status ?? 1);
  const report = JSON.parse(readFileSync(`reports/mutation/${folder}.json`, 'utf8')) as {
    files: Record<string, { mutants: Omit<Mutant, 'file'>[] }>;
  };
  // Changes that no test can run with, or that were left out, do not count.
  return Object.entries(report.files).flatMap(([file, { mutants }]) =>
    mutants
      .filter(({ status }) => /Killed|Timeout|Survived|NoCoverage/.test(status))
      .map((mutant) => ({ file, ...mutant })),
  );
}

function isUndetected({ status }: Mutant): boolean {
  return status === 'Survived' || status === 'NoCoverage';
}

function isSame(one: Mutant, other: Mutant): boolean {
  const identity = ({ file, mutatorName, replacement, location }: Mutant) =>
    JSON.stringify([file, mutatorName, replacement, location]);
  return identity(one) === identity(other);
}

function printScore(name: string, noticed: number, all: number): void {
  console.log(`${name}: ${((100 * noticed) / all).toFixed(1)} % (${noticed} of ${all} changes detected)`);
}
