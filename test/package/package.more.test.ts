import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { heavy, libraries } from '../structure/modules.js';
import { Consumer, pack } from './consumer.js';

let folder: string;
let withPlaywright: Consumer;
let withPuppeteer: Consumer;
let withRunners: Consumer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package-'));
  const tarball = await pack(folder);
  // One after the other: the second installation finds the packages in npm's cache.
  withPlaywright = await Consumer.install(join(folder, 'one'), tarball, ['playwright-core']);
  withPuppeteer = await Consumer.install(join(folder, 'two'), tarball, ['puppeteer-core']);
  const runners = ['vitest', '@playwright/test', 'playwright-core', 'puppeteer-core'];
  withRunners = await Consumer.install(join(folder, 'three'), tarball, runners);
}, 900_000);

// Thousands of files, which take longer to remove than the leak check allows.
afterAll(() => rm(folder, { recursive: true, force: true }));

const ROOT = ['BrowserPool', 'leaseBrowser', 'runOf', 'withPooledBrowser', 'AcquireTimeoutError'];

it('adds at most 8 MB to node_modules, besides the automation library', async () => {
  expect(await withPlaywright.installedSize(['playwright-core'])).toBeLessThan(8e6);
});

describe('import', () => {
  it('exports the functions and classes from the root', async () => {
    const program = "import * as names from 'pooled-browser'; console.log(Object.keys(names).join());";
    const names = await withPlaywright.run('root.mjs', program);
    expect(names.split(',')).toEqual(expect.arrayContaining(ROOT));
  });

  it.each([
    ['playwright', () => withPlaywright],
    ['puppeteer', () => withPuppeteer],
  ])('exports the functions from %s where its library is installed', async (entry, consumer) => {
    const program = `import * as names from 'pooled-browser/${entry}'; console.log(Object.keys(names).join());`;
    const names = await consumer().run('entry.mjs', program);
    expect(names.split(',')).toEqual(expect.arrayContaining(['leaseBrowser', entry, 'withPooledBrowser']));
  });

  it('exports startLocalPool from local', async () => {
    const program =
      "import { startLocalPool } from 'pooled-browser/local'; console.log(typeof startLocalPool);";
    expect(await withPuppeteer.run('local.mjs', program)).toBe('function');
  });

  it('exports test and expect from playwright-test', async () => {
    const program =
      "import * as names from 'pooled-browser/playwright-test'; console.log(Object.keys(names).join());";
    expect(await withRunners.run('playwright-test.mjs', program)).toBe('expect,test');
  });

  it('exports test and createTest from vitest, inside a Vitest test', async () => {
    await withRunners.write('own.test.mjs', IN_VITEST);
    const vitest = 'node_modules/vitest/vitest.mjs';
    const program = `process.argv.push('run'); await import('./${vitest}');`;
    expect(await withRunners.run('vitest.mjs', program)).toContain('createTest,test');
  });

  it('refuses to import files that are not exported', async () => {
    const program = "await import('pooled-browser/dist/index.js').catch((error) => console.log(error.code));";
    expect(await withPlaywright.run('inside.mjs', program)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });
});

describe('require', () => {
  it.each([
    'pooled-browser',
    'pooled-browser/playwright',
    'pooled-browser/puppeteer',
    'pooled-browser/local',
    'pooled-browser/bullmq',
  ])('loads %s from CommonJS', async (entry) => {
    const program = `console.log(Object.keys(require('${entry}')).length > 0);`;
    expect(await withPlaywright.run('program.cjs', program)).toBe('true');
  });
});

describe('an import', () => {
  it('loads no automation library and no heavy package with the root', async () => {
    expect(await packagesNotFor("import 'pooled-browser';")).toEqual([]);
  });

  it('loads neither library with the entries playwright and puppeteer', async () => {
    const imports = "import 'pooled-browser/playwright'; import 'pooled-browser/puppeteer';";
    expect(await packagesNotFor(imports)).toEqual([]);
  });

  it('detects a package that loads too early', async () => {
    expect(await packagesNotFor("import 'pooled-browser'; import 'playwright-core';")).toEqual([
      'playwright-core',
    ]);
  });

  async function packagesNotFor(imports: string): Promise<string[]> {
    const loaded = await withPlaywright.loadedBy(imports);
    expect(loaded).toContain('pooled-browser');
    const late: readonly string[] = [...libraries, ...heavy];
    return loaded.filter((name) => late.includes(name));
  }
});

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
    expect(output).toBe('ERR_MISSING_LIBRARY ioredis');
  });
});

const IN_VITEST = `
import * as names from 'pooled-browser/vitest';
names.test('has names', () => console.log(Object.keys(names).sort().join()));
`;

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

describe('types', () => {
  it.each([
    ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
  ])('compile for a strict project with one library and module resolution %s', async (_, options) => {
    await withPlaywright.write('consumer.ts', consumerOf('playwright'));
    await withPuppeteer.write('consumer.ts', consumerOf('puppeteer'));
    expect(await withPlaywright.compile(options)).toEqual([]);
    expect(await withPuppeteer.compile(options)).toEqual([]);
  });

  it('compile for a strict project that uses the fixtures', async () => {
    await withRunners.write('consumer.ts', CONSUMER_OF_FIXTURES);
    expect(await withRunners.compile({ module: 'nodenext' })).toEqual([]);
    expect(await withRunners.compile({ module: 'esnext', moduleResolution: 'bundler' })).toEqual([]);
  });

  it('reject a misspelled option', async () => {
    await withPlaywright.write('consumer.ts', consumerOf('playwright').replace('timeout:', 'timout:'));
    const complaints = await withPlaywright.compile({ module: 'nodenext' });
    expect(complaints).toContainEqual(expect.stringMatching(/^consumer\.ts.*'timout' does not exist/));
  });
});

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

export async function lease(): Promise<string> {
  await using local = await startLocalPool({ pools: [{ name: 'scrapers', size: 1 }] });
  await using leased = await leaseBrowser(new BrowserPool('scrapers', { baseUrl: local.baseUrl, token: local.token }));
  return leased.page.url();
}
`;
}

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
