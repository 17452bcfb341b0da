/**
 * `npm run bench -- local-pool`: the local pool, compared with `puppeteer.launch` for each job, with Puppeteer's own flags: from
 * the start to the first page, a page of an idle browser, the next browser after one that was destroyed, twenty browsers
 * at once, and the memory of idle browsers. ROUNDS (default 10). Memory is read from /proc, so only on Linux.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer, { type Browser } from 'puppeteer-core';
import { BrowserPool } from '../../src/index.js';
import { findBrowser, startLocalPool, type LocalPool } from '../../src/local.js';
import { withPooledBrowser } from '../../src/puppeteer.js';
import { kill, processesOf } from '../support/processes.js';
import { compare, printComparison, setting, time, type Way } from './bench.js';

const ROUNDS = setting('ROUNDS', 10);
const PEER = 'puppeteer.launch';
const MANY = 20;
const IDLE = 4;
/** In MB, and the others in ms. */
const MEMORY = 'memory of an idle browser';

const folder = mkdtempSync(join(tmpdir(), 'pb-bench-'));
process.env['TMPDIR'] = folder;
process.once('exit', () => {
  processesOf(folder).forEach(kill);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});
const executablePath = await findBrowser();
const rows: string[][] = [];
await compareTwo('from the start to a page', ROUNDS, {
  'local pool': () => withPool(1, (pool) => time(() => usePages(pool, 1)), { includesStart: true }),
  [PEER]: () => withLaunched(1, { includesStart: true }),
});
await withPool(1, async (pool, local) => {
  await compareTwo('a page of an idle browser', ROUNDS, {
    'local pool': () => time(() => usePages(pool, 1)),
    [PEER]: () => withLaunched(1, { includesStart: true }),
  });
  await compareTwo('the next browser after a destroyed one', ROUNDS, {
    'local pool': async () => {
      const { session_id } = (await pool.acquire({ acquire_timeout_seconds: 60 }))!;
      await pool.release(session_id, { reuse: false });
      return time(() => isFilled(local, 1));
    },
    [PEER]: () => withLaunched(1, { includesStart: true }),
  });
  return 0;
});
await compareTwo(`${MANY} pages in ${MANY} browsers at once`, Math.min(3, ROUNDS), {
  'local pool': () => withPool(MANY, (pool) => time(() => usePages(pool, MANY)), { includesStart: true }),
  [PEER]: () => withLaunched(MANY, { includesStart: true }),
});
await compareTwo(MEMORY, Math.min(3, ROUNDS), {
  'local pool': () =>
    withPool(IDLE, async (_pool, local) => (await isFilled(local, IDLE), memoryOfBrowsers() / IDLE)),
  [PEER]: () => withLaunched(IDLE, { includesStart: false }),
});
printComparison(rows, [PEER]);
process.exit();

async function compareTwo(subject: string, rounds: number, ways: Record<string, () => Promise<number>>) {
  const measured = Object.entries(ways).map(([name, measure]): [string, Way<'cost'>] => [
    name,
    async () => ({ cost: await measure() }),
  ]);
  const units = { cost: subject === MEMORY ? 'MB' : 'ms' };
  const comparison = { subject, ways: Object.fromEntries(measured), units, peers: [PEER], rounds };
  rows.push(...(await compare({ ...comparison, warmUp: 0 })));
}

/** Starts a pool for `measure`, whose value is a time if `includesStart`. */
async function withPool(
  size: number,
  measure: (pool: BrowserPool, local: LocalPool) => Promise<number>,
  { includesStart = false } = {},
): Promise<number> {
  const began = performance.now();
  await using local = await startLocalPool({ pools: [{ name: 'bench', size }] });
  await using pool = new BrowserPool('bench', { baseUrl: local.baseUrl, token: local.token });
  const started = performance.now() - began;
  return (includesStart ? started : 0) + (await measure(pool, local));
}

/** Returns the time until all browsers have a page, or else their memory. */
async function withLaunched(count: number, { includesStart }: { includesStart: boolean }): Promise<number> {
  const browsers: Browser[] = [];
  const launch = async () => {
    const browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox'] });
    browsers.push(browser);
    await (await browser.pages())[0]!.evaluate('1');
  };
  const duration = await time(() => Promise.all(Array.from({ length: count }, launch)));
  const cost = includesStart ? duration : memoryOfBrowsers() / count;
  await Promise.all(browsers.map((browser) => browser.close()));
  return cost;
}

/** All pages stay open until the last one is usable. */
async function usePages(pool: BrowserPool, count: number): Promise<void> {
  let usable = 0;
  const options = { acquireTimeout: 120_000, connectTimeout: 120_000, replays: 'off' } as const;
  const use = () =>
    withPooledBrowser(
      pool,
      async ({ page }) => {
        await page.evaluate('1');
        usable++;
        while (usable < count) await sleep(5);
      },
      options,
    );
  await Promise.all(Array.from({ length: count }, use));
}

async function isFilled(local: LocalPool, count: number): Promise<void> {
  while (local.stats().idle < count) await sleep(5);
}

/** Memory of all browsers in MB. Pages that processes share count in parts. */
function memoryOfBrowsers(): number {
  const sizes = processesOf(folder).map(({ pid }) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return Number(/^Pss: +(\d+) kB/m.exec(rollup)?.[1] ?? 0) / 1024;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}
