/**
 * `npm run matrix`: installs the packed package as a user does, with each package manager, beside the oldest, the newest and the
 * release before of each library, runs the programs of `project/` there on each runtime, and writes examples/compatibility.md.
 * Each value of a factor meets each value of every other factor in one combination. Firefox has combinations of its own.
 *
 * `npm run matrix -- small` runs two combinations on this Node, with Bun and Deno, one of them also in Firefox, and writes nothing.
 * Its versions are those of the last results: a release of today decides about no change.
 * `npm run matrix -- 1,4-7` and `npm run matrix -- firefox` run a part. `results.jsonl` has the last result of each combination.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findBrowser, startLocalPool } from '../../src/local.js';
import { OLDEST } from '../../src/shared/library-version.js';
import { errorsOf, outsideNpm, pack, STRICT } from '../package/consumer.js';
import { RecordingPool } from '../fixtures/recording-pool.js';
import { hasRedis, TestRedis } from '../support/redis-server.js';
import { pairwise } from './combinations.js';
import { compatibility, type Result, type Wanted } from './compatibility.js';
import { INSTALLERS, variablesOf, Tools, type Installer } from './installers.js';
import { faultsOfPlaywright, faultsOfVitest } from './reports.js';
import { run } from './run.js';

const RESULTS = 'test/matrix/results.jsonl';
const PAGE = 'examples/compatibility.md';
/** Milliseconds that the pool of the fixtures takes to lease a browser: longer than their tests may take. */
const ACQUIRE_DELAY = 11_000;

const LEVELS = ['oldest', 'before', 'newest'] as const;
type Level = (typeof LEVELS)[number];
const LIBRARIES = [
  'playwright-core',
  'puppeteer-core',
  'chromium-bidi',
  'vitest',
  'bullmq',
  'ioredis',
] as const;
type Library = (typeof LIBRARIES)[number];
/** The last result of each combination. */
const known = new Map(
  (await readFile(RESULTS, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Result)
    .map((one) => [keyOf(one.wanted), one]),
);
type Factor = 'installer' | 'runtime' | Library;

const FACTORS: Record<Factor, readonly string[]> = {
  installer: INSTALLERS,
  runtime: ['Node 20.19', 'Node 22', 'Node 24', 'Node latest', 'Bun', 'Deno'],
  ...(Object.fromEntries(LIBRARIES.map((name) => [name, LEVELS])) as Record<Library, typeof LEVELS>),
};
/** A local pool of Firefox, with Puppeteer over BiDi: no other library has a part in it. */
const FIREFOX: readonly Wanted[] = ['Node 20.19', 'Node latest', 'Bun', 'Deno'].flatMap((runtime) =>
  (['oldest', 'newest'] as const).map((level) => ({
    browser: 'firefox' as const,
    installer: 'npm',
    runtime,
    'puppeteer-core': level,
  })),
);
/** In .ci/run: each library old and new, each runtime once. */
const SMALL: readonly Wanted[] = (['oldest', 'newest'] as const).map((level) => ({
  browser: 'chromium',
  installer: 'npm',
  runtime: lastRuntime(level === 'oldest' ? 'Deno' : 'Bun'),
  ...(Object.fromEntries(LIBRARIES.map((name) => [name, level])) as Record<Library, Level>),
}));

/** Bun and Deno read no packages of Plug'n'Play. Vitest 5 needs Node 22. */
function isPossible({ installer, runtime = '', vitest }: Partial<Record<Factor, string>>): boolean {
  if (installer === "yarn Plug'n'Play" && !runtime.startsWith('Node') && runtime !== '') return false;
  return !(runtime === 'Node 20.19' && vitest === 'newest');
}

const [part = 'all'] = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), 'matrix-'));
const tarball = await pack(folder);
const tools = new Tools(folder);
const ofChromium = pairwise(FACTORS, isPossible).map((one): Wanted => ({ browser: 'chromium', ...one }));
const all = [...ofChromium, ...FIREFOX];
const browsers = {
  chromium: await versionOf('chromium'),
  firefox: await versionOf('firefox'),
};
const hasFirefox = browsers.firefox !== 'none';
const isSmall = part === 'small';
const releases = isSmall ? testedReleasesOf : releasesOf;
const versions = Object.fromEntries(
  await Promise.all(LIBRARIES.map(async (name) => [name, await releases(name)] as const)),
);
const redis = hasRedis ? await TestRedis.start() : undefined;
const results = isSmall ? await Promise.all(SMALL.map(runCombination)) : await runPart();
await rm(folder, { recursive: true, force: true });
const failed = results.filter(({ faults }) => faults.length > 0);
for (const { wanted, faults } of failed) console.log(`\n${nameOf(wanted)} failed:\n${faults.join('\n')}`);
console.log(`\n${results.length - failed.length} of ${results.length} combinations passed.`);
await redis?.[Symbol.asyncDispose]();
process.exit(failed.length > 0 ? 1 : 0);

/** Runs the combinations of a part, one after the other: each uses all cores. */
async function runPart(): Promise<Finished[]> {
  const done: Finished[] = [];
  const numbers = numbersOf(part);
  if (!hasFirefox) console.log('There is no Firefox: its combinations are not run.');
  for (const number of numbers) {
    if (!hasFirefox && all[number - 1]!.browser === 'firefox') continue;
    const finished = await runCombination(all[number - 1]!, number - 1);
    done.push(finished);
    await keep(finished);
  }
  return done;
}

/** Replaces the result of a combination, and writes the page of all. */
async function keep({ faults: _shown, ...result }: Finished): Promise<void> {
  known.set(keyOf(result.wanted), result);
  const rows = all.map((wanted) => ({ wanted, result: known.get(keyOf(wanted)) }));
  const kept = rows.flatMap((row) => row.result ?? []);
  await writeFile(RESULTS, kept.map((one) => `${JSON.stringify(one)}\n`).join(''));
  await writeFile(PAGE, await compatibility(rows));
}

function keyOf(wanted: Wanted): string {
  const parts = Object.entries(wanted).map((part) => part.join(' '));
  return parts.toSorted().join();
}

function nameOf(wanted: Wanted): string {
  return Object.values(wanted).join(', ');
}

/** The numbers of a part such as `1,4-7`. */
function numbersOf(text: string): number[] {
  const [first, last] = [ofChromium.length + 1, all.length];
  const named: Record<string, number[][]> = { all: [[1, last]], firefox: [[first, last]] };
  const ranges = named[text] ?? text.split(',').map((range) => range.split('-').map(Number));
  const numbers = ranges.flatMap(([first = 1, last = first]) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at),
  );
  return numbers.filter((number) => number <= all.length);
}

/** What failed, beside the result. */
interface Finished extends Result {
  readonly faults: readonly string[];
}

async function runCombination(wanted: Wanted, index: number): Promise<Finished> {
  const started = performance.now();
  const number = index + 1;
  const home = join(folder, `combination-${number}`);
  const runtime = await tools.runtime(wanted.runtime);
  const installer = wanted.installer as Installer;
  const libraries: Partial<Record<Library, string>> = Object.fromEntries(
    LIBRARIES.flatMap((name) =>
      wanted[name] === undefined ? [] : [[name, versions[name]![LEVELS.indexOf(wanted[name] as Level)]!]],
    ),
  );
  const { 'playwright-core': playwright, vitest = '' } = libraries;
  const packages = Object.entries({ ...libraries, ...(playwright && { '@playwright/test': playwright }) });
  const node = await tools.runtime(isSmall || runtime.name !== 'Node' ? 'Node current' : wanted.runtime);
  const variables = { ...outsideNpm(), ...variablesOf(installer, home) };
  const ran: Record<string, string> = {};
  const faults: string[] = [];
  const note = (what: string, fault: string | undefined) => {
    ran[what] = fault === undefined ? 'passed' : 'failed';
    if (fault !== undefined) faults.push(`${what}: ${fault}`);
  };
  try {
    // A peer of Vitest 5, which Yarn does not install by itself.
    const vite = vitest.startsWith('5.') ? ['vite'] : [];
    await tools.install(installer, home, [tarball, ...packages.map((one) => one.join('@')), ...vite]);
    note('install', undefined);
    await cp('test/matrix/project', home, { recursive: true });
    // The file of the test runner of each runtime, with its packages.
    const tests = {
      Node: ['--test', '--test-force-exit'],
      Bun: ['test', '--timeout', '60000'],
      Deno: ['test', '--allow-all', '--no-check'],
    };
    const runTests = async (name: string, env: NodeJS.ProcessEnv = {}) => {
      const args = tests[runtime.name as keyof typeof tests];
      const { code, output } = await run([runtime.path, ...args, `./${name}.test.mjs`], inProject(env));
      return code === 0 ? undefined : output;
    };
    const runLeases = (browser: string) => runTests('heart', { MATRIX_BROWSER: browser });
    note('leases', await runLeases(wanted.browser));
    if (wanted.browser === 'firefox') return await finish();
    if (isSmall && runtime.name === 'Bun' && hasFirefox) note('Firefox', await runLeases('firefox'));
    if (redis) note('queue', await runTests('queue', { REDIS_URL: redis.url }));
    // These take long, and do not depend on libraries: once for each runtime and each package manager.
    const isFirst = (factor: Factor) => all.findIndex((one) => one[factor] === wanted[factor]) === index;
    if (isSmall || isFirst('runtime') || isFirst('installer')) {
      note('ends', await runTests('ends'));
      note('commands', await runTests('commands'));
      if (!isSmall) note('features', await runTests('features'));
    }
    const nodeModules = installer !== "yarn Plug'n'Play";
    if (nodeModules && !isSmall) note('types', await typeFaults());
    if (isSmall || runtime.name === 'Node') {
      note('Vitest', await withPool(runVitest));
      note('Playwright Test', await withPool(runPlaywright));
    }
  } catch (error) {
    note('install', String(error));
  }
  return finish();

  async function finish(): Promise<Finished> {
    await rm(home, { recursive: true, force: true });
    const seconds = Math.round((performance.now() - started) / 1000);
    const result = {
      wanted,
      date: new Date().toISOString().slice(0, 10),
      browser: browsers[wanted.browser],
      runtime: `${runtime.name} ${runtime.version}`,
      libraries,
      ran,
      seconds,
    };
    console.log(`${number}/${all.length}`, result);
    return { ...result, faults };
  }

  function inProject(env: NodeJS.ProcessEnv) {
    return { cwd: home, env: { ...variables, ...env } };
  }

  /** Runs the fixtures on a pool that takes its time. */
  async function withPool(use: (env: NodeJS.ProcessEnv) => Promise<string | undefined>) {
    await using local = await startLocalPool();
    await using pool = await RecordingPool.over(local);
    pool.acquireDelay = ACQUIRE_DELAY;
    return await use(pool.environment);
  }

  async function runVitest(env: NodeJS.ProcessEnv): Promise<string | undefined> {
    const bin = await binOf('vitest', 'vitest.mjs');
    const args = ['run', '--reporter=json', '--outputFile=vitest.json'];
    const { output } = await run([node.path, bin, ...args], inProject(env));
    const report = await readFile(join(home, 'vitest.json'), 'utf8').catch(() => undefined);
    return report === undefined ? output : faultsOfVitest(report, vitest);
  }

  async function runPlaywright(env: NodeJS.ProcessEnv): Promise<string | undefined> {
    const bin = await binOf('@playwright/test', 'cli.js');
    const reporter = { PLAYWRIGHT_JSON_OUTPUT_NAME: 'playwright.json' };
    const { output } = await run(
      [node.path, bin, 'test', '--reporter=json'],
      inProject({ ...env, ...reporter }),
    );
    const report = await readFile(join(home, 'playwright.json'), 'utf8').catch(() => undefined);
    return report === undefined ? output : faultsOfPlaywright(report, join(home, 'artifacts'));
  }

  /** Path of the program of a package, also of one within a zip file of Plug'n'Play. */
  async function binOf(name: string, file: string): Promise<string> {
    const code = `console.log(require.resolve('${name}/package.json'))`;
    const { output } = await run([node.path, '--no-warnings', '--eval', code], inProject({}));
    return resolve(output.trim(), '..', file);
  }

  async function typeFaults(): Promise<string | undefined> {
    const tsconfig = { compilerOptions: { ...STRICT, module: 'nodenext' }, files: ['types.ts'] };
    await writeFile(join(home, 'tsconfig.json'), JSON.stringify(tsconfig));
    const errors = await errorsOf(home);
    // Errors in the types of other packages do not count.
    const own = errors.filter((line) => !/node_modules\/(?!.*node_modules\/)(?!pooled-browser\/)/.test(line));
    return own.length > 0 ? own.join('\n') : undefined;
  }
}

/** Name and version of a browser of this machine. */
async function versionOf(browser: Wanted['browser']): Promise<string> {
  const path = await findBrowser({ browser }).catch(() => undefined);
  if (path === undefined) return 'none';
  const { output } = await run([path, '--version']);
  return /(?:Chromium|Google Chrome|Firefox) [\d.]+/.exec(output)?.[0] ?? 'unknown';
}

/** The oldest and the newest version of the last results. */
function testedReleasesOf(name: Library): string[] {
  const tested = [...known.values()]
    .flatMap(({ libraries }) => libraries[name] ?? [])
    .map((version) => version.split('.').map(Number))
    .toSorted(compare);
  const [oldest, newest] = [tested[0]!, tested.at(-1)!].map((version) => version.join('.'));
  return [oldest!, newest!, newest!];
}

/** A runtime with the version of the last results. */
function lastRuntime(name: string): string {
  return [...known.values()].find(({ runtime }) => runtime.startsWith(name))!.runtime;
}

/** The oldest supported version, the last one of the release line before the newest, and the newest. */
async function releasesOf(name: string): Promise<string[]> {
  const { output } = await run(['npm', 'view', name, 'versions', 'dist-tags.latest', '--json'], {
    env: outsideNpm(),
  });
  const { versions: listed, 'dist-tags.latest': newest } = JSON.parse(output) as {
    versions: string[];
    'dist-tags.latest': string;
  };
  const stable = listed
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .map((version) => version.split('.').map(Number));
  const [major, minor, patch] = newest.split('.').map(Number) as [number, number, number];
  const promised = OLDEST[name]!.split('.').map(Number);
  const sorted = stable.filter((version) => compare(version, promised) >= 0).toSorted(compare);
  const oldest = sorted[0]!;
  const line = [
    (version: number[]) => version[0]! < major,
    (version: number[]) => version[0] === major && version[1]! < minor,
    (version: number[]) => version[0] === major && version[1] === minor && version[2]! < patch,
  ];
  const before = line.map((isIn) => sorted.slice(1).findLast(isIn)).find((version) => version !== undefined);
  return [oldest.join('.'), before?.join('.') ?? newest, newest];
}

function compare(a: readonly number[], b: readonly number[]): number {
  return a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!;
}
