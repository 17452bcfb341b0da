import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useLocalPool } from '../support/local.js';
import { Consumer, pack } from './consumer.js';

/** Optional libraries and test runners, and packages that take tens of milliseconds to load. */
const LATE = (
  'playwright-core puppeteer-core chromium-bidi @playwright/test vitest bullmq ioredis ' +
  'undici ws jose p-retry commander @modelcontextprotocol/sdk'
).split(' ');

const CONSUMER_OF_FIXTURES = `
import type { PlaywrightTestConfig } from '@playwright/test';
import { expect, test as pooled, type PooledFixtures } from 'pooled-browser/playwright-test';
import { leaseBrowser } from 'pooled-browser/puppeteer';
import { createTest, test, type ProvidedOptions } from 'pooled-browser/vitest';

export const config: PlaywrightTestConfig<object, PooledFixtures> = { use: { pooledBrowser: { pool: 'scrapers' } } };
export const provided: ProvidedOptions = { pool: 'scrapers', scope: 'file' };

pooled('has a page', async ({ page }) => expect(page).toHaveTitle('Hello'));
test('has a page', async ({ page, session }) => session.session_id + (await page.title()));
createTest(leaseBrowser)('has a page', async ({ page }) => page.setViewport({ width: 800, height: 600 }));
`;

const used = useLocalPool();
let folder: string;
let withPlaywright: Consumer;
let withPuppeteer: Consumer;
let withRunners: Consumer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package-'));
  const tarball = await pack(folder);
  // One after the other: the next installation finds the packages in npm's cache.
  withPlaywright = await Consumer.install(join(folder, 'one'), tarball, ['playwright-core']);
  // All other tests use Puppeteer 24.
  withPuppeteer = await Consumer.install(join(folder, 'two'), tarball, ['puppeteer-core@25']);
  const runners = ['vitest', '@playwright/test', 'playwright-core', 'puppeteer-core'];
  withRunners = await withPlaywright.with(join(folder, 'three'), runners);
}, 600_000); // Three times npm.

// Thousands of files, which take longer to remove than the leak check allows.
afterAll(() => rm(folder, { recursive: true, force: true }));

it('adds at most 8 MB to node_modules, besides the automation library', async () => {
  expect(await withPlaywright.installedSize(['playwright-core'])).toBeLessThan(8e6);
});

it('imports only packages that package.json declares, and declares only packages that it imports', () => {
  const home = join(withPlaywright.folder, 'node_modules/pooled-browser');
  const names = readdirSync(join(home, 'dist'), { recursive: true, encoding: 'utf8' });
  const code = names
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(home, 'dist', name), 'utf8'));
  const imports = code.join('\n').matchAll(/\b(?:from|import) ?\(?["']((?:@[\w.-]+\/)?[\w-]+)[\w/.-]*["']/g);
  const imported = new Set([...imports].map(([, name]) => name!));
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
    dependencies: object;
    peerDependencies: object;
  };
  // `demo` prints an import of the package itself.
  const declared = ['pooled-browser', ...Object.keys({ ...dependencies, ...peerDependencies })];
  expect([...imported].filter((name) => !declared.includes(name))).toEqual([]);
  expect(Object.keys(dependencies).filter((name) => !imported.has(name))).toEqual([]);
});

describe('import', () => {
  it('refuses to import files that are not exported', async () => {
    const program = "await import('pooled-browser/dist/index.js').catch((error) => console.log(error.code));";
    expect(await withPlaywright.run('inside.mjs', program)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it('loads the entries from CommonJS', async () => {
    const program = `for (const entry of ['', '/playwright', '/puppeteer', '/local', '/bullmq'])
      console.log(Object.keys(require('pooled-browser' + entry)).length > 0);`;
    expect(await withPlaywright.run('program.cjs', program)).toBe('true\n'.repeat(5).trim());
  });

  it.each([
    ['the root', "import 'pooled-browser';", []],
    [
      'the entries of libraries',
      "import 'pooled-browser/playwright'; import 'pooled-browser/puppeteer';",
      [],
    ],
    // Each command that an argument names is loaded.
    [
      '--help of each command',
      helpOf('demo serve exec mcp map work acquire flush replays doctor install-browser'),
      ['commander'],
    ],
    // Shows that the check detects a package.
    ['the root and Playwright', "import 'pooled-browser'; import 'playwright-core';", ['playwright-core']],
  ])('loads no automation library and no heavy package with %s', async (_, program, expected) => {
    const loaded = await withPlaywright.loadedBy(program);
    expect(loaded).toContain('pooled-browser');
    expect(loaded.filter((name) => LATE.includes(name))).toEqual(expected);
  });
});

function helpOf(commands: string): string {
  const args = JSON.stringify(['--help', ...commands.split(' ')]);
  return `process.argv.push(...${args}); await import('./node_modules/pooled-browser/dist/cli/main.js');`;
}

describe('a library that is not installed', () => {
  it.each([
    ['puppeteer', 'puppeteer-core', () => withPlaywright],
    ['playwright', 'playwright-core', () => withPuppeteer],
  ])('makes %s fail at its first use, not at its import', async (entry, library, consumer) => {
    const output = await consumer().run('missing.mjs', MISSING.replace('ENTRY', entry));
    expect(output.split('\n')).toEqual(['imported', `ERR_MISSING_LIBRARY ${library}`]);
  });

  it('makes bullmq fail at its first use, not at its import', async () => {
    const output = await withPlaywright.run('missing-queue.mjs', MISSING_QUEUE);
    expect(output).toBe('ERR_MISSING_LIBRARY bullmq');
  });
});

it.each(['cdp', 'bidi'])('drives a browser with puppeteer-core 25 over %s', async (protocol) => {
  const { baseUrl, token } = used.local;
  const program = `
    import { createRequire } from 'node:module';
    import { BrowserPool } from 'pooled-browser';
    import { withPooledBrowser } from 'pooled-browser/puppeteer';
    const pool = new BrowserPool('test', { baseUrl: '${baseUrl}', token: '${token}' });
    const visit = async ({ page }) => {
      await page.goto('data:text/html,<title>twenty-five</title>');
      return page.title();
    };
    const { value, released } = await withPooledBrowser(pool, visit, { protocol: '${protocol}' });
    await pool.close();
    const { version } = createRequire(import.meta.url)('puppeteer-core/package.json');
    console.log(version.split('.')[0], value, released);
  `;
  expect(await withPuppeteer.run(`${protocol}.mjs`, program)).toBe('25 twenty-five reused');
});

describe('types', () => {
  it.each([
    ['Playwright', () => withPlaywright, consumerOf('playwright')],
    ['Puppeteer', () => withPuppeteer, consumerOf('puppeteer')],
    ['the fixtures', () => withRunners, CONSUMER_OF_FIXTURES],
  ])('compile for a strict project with %s', async (_, consumer, program) => {
    await consumer().write('consumer.ts', program);
    expect(await consumer().compile({ module: 'nodenext' })).toEqual([]);
    expect(await consumer().compile({ module: 'esnext', moduleResolution: 'bundler' })).toEqual([]);
  });
});

const MISSING_QUEUE = `
import { enqueueInputs } from 'pooled-browser/bullmq';
await enqueueInputs('queue', [1], { connection: 'redis://127.0.0.1:2' }).catch((error) => {
  console.log(error.code, error.library);
});
`;

/** The acquire request waits at the service. Meanwhile, before any lease, the missing library fails the call. */
const MISSING = `
import { createServer } from 'node:http';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/ENTRY';
console.log('imported');
const server = createServer(() => {}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const pool = new BrowserPool('none', { baseUrl: 'http://127.0.0.1:' + server.address().port, token: 'a-token' });
await withPooledBrowser(pool, () => 1, { acquireTimeout: 10_000 }).catch((error) => {
  console.log(error.code, error.library);
});
server.closeAllConnections();
server.close();
await pool.close();
`;

function consumerOf(entry: 'playwright' | 'puppeteer'): string {
  return `
import { BrowserPool, isAcquireTimeoutError, runOf, type BrowserSession, type Replay } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { leaseBrowser, withPooledBrowser } from 'pooled-browser/${entry}';

const pool = new BrowserPool('scrapers', { baseUrl: 'https://pool.example.com', token: async () => 'token' });

export async function visit(signal: AbortSignal): Promise<string> {
  try {
    const run = await withPooledBrowser(pool, async ({ page, session }) => {
      await page.goto('https://example.com');
      const { session_id }: BrowserSession = session;
      return session_id + (await page.title());
    }, { signal, timeout: 1000 });
    const replays: readonly Replay[] = run.replays;
    return run.value + replays.length;
  } catch (error) {
    if (isAcquireTimeoutError(error)) return String(error.waited);
    return runOf(error)?.session?.session_id ?? '';
  }
}

export async function urlOfLease(): Promise<string> {
  await using local = await startLocalPool({ pools: [{ name: 'scrapers', size: 1 }] });
  await using lease = await leaseBrowser(new BrowserPool('scrapers', { baseUrl: local.baseUrl, token: local.token }));
  return lease.page.url();
}
`;
}
