/**
 * Runs Playwright's own tests through `/playwright`, and on a Chromium of `launchServer`, and prints the differences. Not part of the
 * tests: it installs packages, and takes about a second for each test.
 *
 *   git clone --depth 1 --branch v1.62.1 https://github.com/microsoft/playwright ../playwright
 *   npm run build && npx tsx test/peers/playwright-tests.ts ../playwright page/page-route library/download
 *
 * Nothing is built: the published packages of the same version replace those of the repository.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findBrowser } from 'pooled-browser/local';

const CONFIG = `
export default {
  testDir: 'tests',
  timeout: 60_000,
  workers: 1,
  reporter: [['json', { outputFile: 'report.json' }]],
  snapshotPathTemplate: '{testDir}/{testFileDir}/{testFileName}-snapshots/{arg}-chromium{ext}',
  projects: [{ name: 'own', use: { mode: 'default', browserName: 'chromium', headless: true } }],
};`;

const [clone, ...names] = process.argv.slice(2);
if (clone === undefined || names.length === 0)
  throw new Error('Pass the folder of the repository, and the names of spec files, such as page/page-route.');

const folder = prepare(resolve(clone));
const executablePath = await findBrowser();
const environment = { ...process.env, CHROME_PATH: executablePath, PWTEST_UNDER_TEST: '1' };

/** The result of each test, by its title. */
type Results = Record<string, string>;

const SERVERS = {
  launchServer: `
    const { chromium } = require('playwright-core');
    const options = { executablePath: process.env.CHROME_PATH, args: ['--no-sandbox'] };
    chromium.launchServer(options).then((server) => console.log(server.wsEndpoint()));`,
  leased: `
    const { BrowserPool, serveProxy } = require(process.env.LIBRARY + '/index.js');
    const { startLocalPool } = require(process.env.LIBRARY + '/local.js');
    (async () => {
      const local = await startLocalPool({ pools: [{ name: 'test', size: 1, timeoutSeconds: 600 }] });
      const pool = new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token });
      console.log((await serveProxy(pool)).playwrightUrl);
    })();`,
};

const servers = await Promise.all(Object.entries(SERVERS).map(([name, script]) => start(name, script)));
const differences: string[] = [];
let count = 0;
for (const name of names) {
  const [plain, leased] = servers.map(({ url }) => run(name, url));
  count += Object.keys(leased!).length;
  for (const title of new Set(Object.keys({ ...plain, ...leased })))
    if (plain![title] !== leased![title])
      differences.push(`${name} › ${title}: launchServer ${plain![title]}, leased ${leased![title]}`);
}
for (const { child } of servers) child.kill();
console.log(`${count} tests, ${differences.length} differences`);
for (const difference of differences) console.log(difference);
process.exitCode = differences.length > 0 ? 1 : 0;

/** Puts the tests of a clone beside the published packages of its version. */
function prepare(from: string): string {
  const to = mkdtempSync(join(tmpdir(), 'playwright-tests-'));
  for (const part of ['tests', 'packages', 'utils', 'tsconfig.json'])
    cpSync(join(from, part), join(to, part), { recursive: true });
  const { version } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as { version: string };
  writeFileSync(join(to, 'package.json'), JSON.stringify({ private: true, version }));
  const own = ['@playwright/test', 'playwright', 'playwright-core'].map((name) => `${name}@${version}`);
  const others = ['dotenv@17', 'formidable@2', 'ws@8', 'mime@3', 'debug@4', 'proxy-from-env@1'];
  spawnSync('npm', ['install', '--no-audit', '--no-fund', ...own, ...others], { cwd: to, stdio: 'inherit' });
  symlinkSync(join(to, 'node_modules/playwright-core/lib'), join(to, 'packages/playwright-core/lib'));
  writeFileSync(join(to, 'own.config.ts'), CONFIG);
  return to;
}

/** Starts a server in the folder of the tests, whose playwright-core is the server side. */
async function start(name: string, script: string): Promise<{ child: ChildProcess; url: string }> {
  const file = join(folder, `${name}.cjs`);
  writeFileSync(file, script);
  const env = { ...environment, LIBRARY: resolve('dist') };
  const child = spawn(process.execPath, [file], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: String(url).trim() };
}

/** Runs the tests of a spec file with a server. */
function run(name: string, url: string): Results {
  const args = [
    'node_modules/@playwright/test/cli.js',
    'test',
    '-c',
    'own.config.ts',
    `tests/${name}.spec.ts`,
  ];
  const env = { ...environment, PW_TEST_CONNECT_WS_ENDPOINT: url };
  spawnSync(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const results: Results = {};
  read(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as Suite, '', results);
  return results;
}

interface Suite {
  title?: string;
  suites?: Suite[];
  specs?: { title: string; tests: { results: { status: string }[] }[] }[];
}

function read({ title = '', suites = [], specs = [] }: Suite, path: string, results: Results): void {
  const own = `${path}${title} › `;
  for (const spec of specs)
    results[`${own}${spec.title}`] = spec.tests[0]?.results.at(-1)?.status ?? 'not run';
  for (const suite of suites) read(suite, own, results);
}
