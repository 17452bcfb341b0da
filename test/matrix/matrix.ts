/**
 * `npm run matrix`: installs the packed package with the oldest and the newest supported libraries, runs the tests of
 * this folder there with several versions of Node, and prints the table of the README. NODES and LIBRARIES (`oldest`,
 * `newest`) select a part.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startLocalPool } from '../../src/local.js';
import { printTable } from '../bench/bench.js';
import { Consumer, pack } from '../package/consumer.js';

const execute = promisify(execFile);
const { NODES = '20.19,22,24,latest', LIBRARIES = 'oldest,newest' } = process.env;
const SETS: Record<string, string[]> = {
  oldest: [
    'playwright-core@1.55.0',
    'puppeteer-core@24.5.0',
    'chromium-bidi@17.0.2',
    'vitest@3.0.0',
    '@playwright/test@1.55.0',
  ],
  newest: ['playwright-core', 'puppeteer-core', 'chromium-bidi', 'vitest', '@playwright/test'].map(
    (name) => `${name}@latest`,
  ),
};

const folder = await mkdtemp(join(tmpdir(), 'matrix-'));
const tarball = await pack(folder);
const nodes = await Promise.all(NODES.split(',').map(installNode));
const rows: string[][] = [];
for (const set of LIBRARIES.split(',')) {
  const consumer = await Consumer.install(join(folder, set), tarball, SETS[set]!);
  await cp('test/matrix', consumer.folder, { recursive: true });
  const libraries = await Promise.all(SETS[set]!.map((name) => installedVersion(consumer, name)));
  for (const { version, path } of nodes) {
    const results = await runAll(consumer, path);
    rows.push([version, libraries.join(', '), ...results]);
    console.log(rows.at(-1)!.join(' | '));
  }
}
await rm(folder, { recursive: true, force: true });
printTable(['Node', 'libraries', 'leases', 'Vitest', 'Playwright Test'], rows);
process.exit(rows.flat().includes('failed') ? 1 : 0);

/** Installs Node from the npm package `node`. */
async function installNode(wanted: string): Promise<{ version: string; path: string }> {
  const home = join(folder, `node-${wanted}`);
  await mkdir(home);
  await execute('npm', ['install', '--no-audit', '--no-fund', '--prefix', home, `node@${wanted}`]);
  const path = join(home, 'node_modules/.bin/node');
  const { stdout } = await execute(path, ['--version']);
  return { version: stdout.trim().slice(1), path };
}

async function installedVersion({ folder: home }: Consumer, library: string): Promise<string> {
  const name = library.slice(0, library.lastIndexOf('@'));
  const manifest = await readFile(join(home, 'node_modules', name, 'package.json'), 'utf8');
  return `${name} ${(JSON.parse(manifest) as { version: string }).version}`;
}

async function runAll(consumer: Consumer, node: string): Promise<string[]> {
  await using local = await startLocalPool();
  const env = {
    ...process.env,
    BROWSER_POOL_BASE_URL: local.baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: local.token,
  };
  const results: string[] = [];
  for (const args of [
    ['--test', '--test-force-exit', 'heart.test.mjs'],
    ['node_modules/vitest/vitest.mjs', 'run'],
    ['node_modules/@playwright/test/cli.js', 'test'],
  ]) {
    const child = spawn(node, args, { cwd: consumer.folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
    const [code] = (await once(child, 'close')) as [number | null];
    results.push(code === 0 ? 'passed' : 'failed');
    if (code !== 0) console.log(output);
  }
  return results;
}
