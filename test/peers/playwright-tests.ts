/**
 * Runs Playwright's own tests through `/playwright`, and on a Chromium of `launchServer`, and prints the differences. Not part of the
 * tests: it installs packages, and takes about a second for each test.
 *
 *   git clone --depth 1 --branch v1.62.1 https://github.com/microsoft/playwright ../playwright
 *   npm run build && npx tsx test/peers/playwright-tests.ts ../playwright page/page-route library/download
 *
 * Nothing is built: the published packages of the same version replace those of the repository. Pass another version after the folder
 * (`../playwright@1.65.1`) to run these tests with its packages.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findBrowser } from 'pooled-browser/local';
import { compare, report, type Results } from './results.js';

const CONFIG = `
export default {
  testDir: 'tests',
  timeout: 30_000,
  reporter: [['json', { outputFile: 'report.json' }]],
  snapshotPathTemplate: '{testDir}/{testFileDir}/{testFileName}-snapshots/{arg}-chromium{ext}',
  grepInvert: /browsertype-connect.spec.ts launchServer/,
  projects: [{ name: 'own', use: { mode: 'default', browserName: 'chromium', headless: true } }],
};`;

/**
 * The tests of `connect` start and close servers of their own, of two kinds. The second kind becomes a relay to the server that is
 * compared.
 */
const RELAY = `
    const { connect, createServer } = require('node:net');
    const target = new URL(process.env.PW_TEST_CONNECT_WS_ENDPOINT!);
    const { host, port } = target;
    const open = new Set<any>();
    const relay = createServer((near: any) => {
      const far = connect(Number(port), target.hostname);
      near.once('data', data => {
        far.write(String(data).replace(/^host:.*/im, 'Host: ' + host));
        near.pipe(far).pipe(near);
      });
      for (const socket of [near, far]) open.add(socket.on('error', () => near.destroy()));
    });
    await new Promise<void>(resolve => relay.listen(0, '127.0.0.1', resolve));
    const kill = async () => [relay.close(), open.forEach(socket => socket.destroy())];
    this._process = { kill } as any;
    target.port = relay.address().port;
    this._wsEndpoint = target.href;
    return;`;

const [given = '', ...names] = process.argv.slice(2);
const [clone = '', wanted] = given.split('@');
if (clone === '' || names.length === 0)
  throw new Error('Pass the folder of the repository, and the names of spec files, such as page/page-route.');

const folder = prepare(resolve(clone), wanted);
const executablePath = await findBrowser();
const environment = { ...process.env, CHROME_PATH: executablePath, PWTEST_UNDER_TEST: '1' };

const SERVERS = {
  launchServer: `
    const { chromium } = require('playwright-core');
    const options = { executablePath: process.env.CHROME_PATH, args: ['--no-sandbox'] };
    chromium.launchServer(options).then((server) => console.log(server.wsEndpoint()));`,
  leased: `
    const { BrowserPool, serveProxy } = require(process.env.LIBRARY + '/index.js');
    const { startLocalPool } = require(process.env.LIBRARY + '/local.js');
    (async () => {
      const local = await startLocalPool({ pools: [{ name: 'test', size: 2, timeoutSeconds: 600 }] });
      const pool = new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token });
      console.log((await serveProxy(pool)).playwrightUrl);
    })();`,
};

const servers = await Promise.all(Object.entries(SERVERS).map(([name, script]) => start(name, script)));
const [plain, leased] = servers.map(({ url }) => run(names, url, 2)) as [Results, Results];
const differing = compare(plain, leased);
// On a busy machine, a test may fail by chance.
const repeated = [...new Set(differing.map(fileOf))];
if (repeated.length > 0)
  for (const [at, { url }] of servers.entries()) Object.assign([plain, leased][at]!, run(repeated, url, 1));
for (const { child } of servers) child.kill();
report(
  { plain, leased },
  fileOf,
  (title) => `${title}: launchServer ${plain[title]}, leased ${leased[title]}`,
);

/** Returns the name of the spec file, as it is passed. */
function fileOf(title: string): string {
  return title.split('.spec.ts', 1)[0]!;
}

/** Puts the tests of a clone beside the published packages of its version, or of another one. */
function prepare(from: string, other: string | undefined): string {
  const own = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as { version: string };
  const version = other ?? own.version;
  const to = join(tmpdir(), `playwright-tests-${own.version}-${version}`);
  if (existsSync(join(to, 'own.config.ts'))) return to;
  for (const part of ['tests', 'packages', 'utils', 'tsconfig.json'])
    cpSync(join(from, part), join(to, part), { recursive: true });
  writeFileSync(join(to, 'package.json'), JSON.stringify({ private: true, version }));
  const packages = ['@playwright/test', 'playwright', 'playwright-core'].map((name) => `${name}@${version}`);
  const others = ['dotenv@17', 'formidable@2', 'ws@8', 'mime@3', 'debug@4', 'proxy-from-env@1'];
  const env = { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1' };
  spawnSync('npm', ['install', '--no-audit', '--no-fund', ...packages, ...others], {
    cwd: to,
    env,
    stdio: 'inherit',
  });
  const servers = join(to, 'tests/config/remoteServer.ts');
  const source = readFileSync(servers, 'utf8');
  writeFileSync(
    servers,
    source.replace(/class RunServer[^]*?async start\(.*\) \{/, (start) => start + RELAY),
  );
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

/** Runs the tests of spec files with a server. */
function run(files: readonly string[], url: string, workers: number): Results {
  const cli = ['node_modules/@playwright/test/cli.js', 'test', '-c', 'own.config.ts', `--workers=${workers}`];
  const specs = files.map((name) => `tests/${name}.spec.ts`);
  const env = { ...environment, PW_TEST_CONNECT_WS_ENDPOINT: url };
  spawnSync(process.execPath, [...cli, ...specs], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const found: Results = {};
  const { suites } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as { suites: Suite[] };
  for (const suite of suites) read(suite, '', found);
  return found;
}

interface Suite {
  title?: string;
  suites?: Suite[];
  specs?: { title: string; tests: { results: { status: string }[] }[] }[];
}

function read({ title = '', suites = [], specs = [] }: Suite, path: string, found: Results): void {
  const own = `${path}${title} › `;
  for (const spec of specs) found[`${own}${spec.title}`] = spec.tests[0]?.results.at(-1)?.status ?? 'not run';
  for (const suite of suites) read(suite, own, found);
}
