/**
 * Runs Puppeteer's own tests in a Chromium that Puppeteer launched, and in leased ones, through the address
 * of `serveProxy`, and prints the differences. Not part of the tests: it installs packages, and takes
 * about a second for each test.
 *
 *   git clone --depth 1 --branch puppeteer-v22.13.1 https://github.com/puppeteer/puppeteer ../puppeteer
 *   npm run build && npx tsx test/peers/puppeteer-tests.ts ../puppeteer page cookies cdp/CDPSession
 *
 * Nothing is built: the published puppeteer-core that this folder has replaces the packages of the
 * repository. Pass another version after the folder (`../puppeteer@22.13.1`). A clone of
 * cloudflare/puppeteer will do, too. Tests of newer versions pass options to every launch, and would all be
 * skipped. Each spec file has a browser of its own. A test that launches a browser gets another one, and is
 * skipped if it passes options that only a launch has. The reports stay in the temporary folder, below
 * `puppeteer-tests-…`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { BrowserPool, serveProxy } from 'pooled-browser';
import { findBrowser, startLocalPool } from 'pooled-browser/local';
import { compare, report, type Results } from './results.js';

/**
 * Stands in for the package `puppeteer`. What differs between the sides is the address only: the browser of
 * the plain side is launched first, and both are connected to with the same options.
 */
const STAND_IN = `
const core = require('puppeteer-core');
const puppeteer = core.default;
const launchPlain = puppeteer.launch.bind(puppeteer);
const executablePath = process.env.CHROME_PATH;
const LAUNCH_ONLY = ['executablePath', 'headless', 'dumpio', 'handleSIGINT', 'timeout'];
const OF_CONNECT =
  ['acceptInsecureCerts', 'defaultViewport', 'protocol', 'protocolTimeout', 'slowMo', 'targetFilter'];

puppeteer.launch = async ({ ignoreHTTPSErrors, ...options } = {}) => {
  const given = { acceptInsecureCerts: ignoreHTTPSErrors ?? false, ...options };
  for (const name of LAUNCH_ONLY) delete given[name];
  const others = Object.keys(given).filter((name) => !OF_CONNECT.includes(name));
  if (others.length > 0) throw new Error('SKIPPED: launches with ' + others.join(', '));
  const browserWSEndpoint =
    process.env.PROXY_URL ?? (await launchPlain({ executablePath, args: ['--no-sandbox'] })).wsEndpoint();
  return puppeteer.connect({ ...given, browserWSEndpoint });
};
puppeteer.executablePath = () => executablePath;
module.exports = core;`;

/** What the tests import, of the versions that they expect. */
const PACKAGES = 'mocha@10 expect@29 sinon@18 mime@3 ws@8 diff@5 jpeg-js@0.4 pixelmatch@5 pngjs@7'.split(' ');
const MOST_MS_OF_A_TEST = 20_000;
const MOST_MS_OF_A_FILE = 900_000;

const [given = '', ...names] = process.argv.slice(2);
const [clone = '', wanted] = given.split('@');
if (clone === '' || names.length === 0)
  throw new Error('Pass the folder of the repository, and the names of spec files, such as page.');

type Side = 'plain' | 'leased';

const folder = await prepare(resolve(clone), wanted ?? versionOf('puppeteer-core'));
const executablePath = await findBrowser();
const messages: Record<string, string> = {};
await using local = await startLocalPool({
  executablePath,
  pools: [{ name: 'test', size: 6, onDemand: true, timeoutSeconds: 600 }],
});
await using proxy = await serveProxy(new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token }));
const environments: Record<Side, NodeJS.ProcessEnv> = {
  plain: {},
  leased: { PROXY_URL: proxy.url.replace('http', 'ws') },
};

const plain = await run(names, 'plain', 2);
const leased = await run(names, 'leased', 2);
// On a busy machine, a test may fail by chance.
const repeated = [...new Set(compare(plain, leased).map(fileOf))];
Object.assign(plain, await run(repeated, 'plain', 1));
Object.assign(leased, await run(repeated, 'leased', 1));
report({ plain, leased }, fileOf, describe);

/** Returns the name of the spec file, as it is passed. */
function fileOf(title: string): string {
  return title.split(' › ', 1)[0]!;
}

function describe(title: string): string {
  const sides = Object.entries({ plain, leased });
  return sides
    .map(([side, results]) => `${title}: ${side} ${results[title]} ${messages[`${side} ${title}`] ?? ''}`)
    .join('\n');
}

function versionOf(name: string): string {
  const file = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Puts the tests of a clone beside published packages. */
async function prepare(from: string, version: string): Promise<string> {
  const to = join(tmpdir(), `puppeteer-tests-${version}`);
  const modules = join(to, 'node_modules');
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', `puppeteer-core@${version}`];
  mkdirSync(to, { recursive: true });
  writeFileSync(join(to, 'package.json'), JSON.stringify({ private: true }));
  if (!existsSync(modules)) spawnSync('npm', [...install, ...PACKAGES], { cwd: to, stdio: 'inherit' });
  for (const part of ['test', 'packages/testserver']) {
    rmSync(join(to, part), { recursive: true, force: true });
    cpSync(join(from, part), join(to, part), { recursive: true });
  }
  await compile(join(to, 'test/src'), join(to, 'test/build'));
  await compile(join(to, 'packages/testserver/src'), join(to, 'packages/testserver/lib'));
  writeFileSync(join(to, 'stand-in.js'), STAND_IN);
  for (const [name, target] of [
    ['puppeteer/lib/cjs/puppeteer/puppeteer.js', 'stand-in.js'],
    ['puppeteer/index.js', 'stand-in.js'],
    ['@cloudflare/puppeteer', 'node_modules/puppeteer-core'],
    ['@pptr/testserver', 'packages/testserver'],
  ] as const) {
    const path = join(modules, name);
    rmSync(path, { force: true });
    mkdirSync(join(path, '..'), { recursive: true });
    symlinkSync(join(to, target), path);
  }
  return to;
}

/** Compiles the files one by one. Names stay, because functions of the tests run in pages. */
async function compile(from: string, to: string): Promise<void> {
  const entryPoints = [join(from, '*.ts'), join(from, '**/*.ts')];
  await build({
    entryPoints,
    outdir: to,
    format: 'cjs',
    target: 'es2022',
    sourcemap: true,
    logLevel: 'error',
  });
}

/** Runs the tests of spec files on a side, each file in a process of its own. */
async function run(files: readonly string[], side: Side, workers: number): Promise<Results> {
  const found: Results = {};
  const left = [...files];
  const worker = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift())
      Object.assign(found, await runFile(name, side));
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return found;
}

async function runFile(name: string, side: Side): Promise<Results> {
  const output = join(folder, 'reports', side, `${name}.json`);
  rmSync(output, { force: true });
  const mocha = `--enable-source-maps node_modules/mocha/bin/mocha.js --exit --timeout ${MOST_MS_OF_A_TEST}`;
  const loaded = `--require ./test/build/mocha-utils.js test/build/${name}.spec.js`;
  const args = `${mocha} ${loaded} --reporter json --reporter-option`.split(' ');
  const child = spawn(process.execPath, [...args, `output=${output}`], {
    cwd: folder,
    env: { ...process.env, CHROME_PATH: executablePath, ...environments[side] },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: MOST_MS_OF_A_FILE,
  });
  await once(child, 'exit');
  if (!existsSync(output)) return { [`${name} › (the file)`]: 'not run' };
  return read(JSON.parse(readFileSync(output, 'utf8')) as MochaReport, name, side);
}

interface MochaTest {
  readonly fullTitle: string;
  readonly err: { readonly message?: string };
}

interface MochaReport {
  readonly tests: readonly MochaTest[];
  readonly passes: readonly MochaTest[];
  readonly failures: readonly MochaTest[];
  readonly pending: readonly MochaTest[];
}

function read({ passes, failures, pending }: MochaReport, name: string, side: Side): Results {
  const found: Results = {};
  const add = (status: string, { fullTitle, err }: MochaTest) => {
    const { message = '' } = err;
    let title = `${name} › ${fullTitle}`;
    while (title in found) title += ' (again)';
    found[title] = message.startsWith('SKIPPED') ? 'skipped' : status;
    messages[`${side} ${title}`] = message;
  };
  for (const test of passes) add('passed', test);
  for (const test of failures) add('failed', test);
  for (const test of pending) add('skipped', test);
  return found;
}
