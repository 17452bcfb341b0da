/**
 * `npm run bench:scraping`: pages a second of `mapPooledBrowsers`, of puppeteer-cluster, and of a bare loop of each
 * driver over pages that it uses again and again. All open the same local pages, four at once, with the same Chromium
 * and its same flags; ours, and the bare loops, through the local pool's tunnel, puppeteer-cluster straight.
 *
 * PAGES (default 120; 1000 for the long run), ROUNDS (default 5), ONLY (a regular expression that finds the ways by
 * name), and MEMORY=1 for the memory over 10,000 inputs.
 *
 * A run ends after PAGES pages, or after PAGES fiftieths of a second: slow ways open fewer pages, or five rounds of them
 * all would take a quarter of an hour. Measured is from the end of the fourth page to that of the last: no launch and no
 * lease, but all that comes between two pages. A run that hangs ends the whole with an
 * error that names it, and no browser outlives this.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { raceAbort } from '../../src/shared/abort.js';
import { BrowserPool } from '../../src/index.js';
import { findBrowser, startLocalPool } from '../../src/local.js';
import * as ourPuppeteer from '../../src/puppeteer.js';
import { kill, processesOf } from '../support/processes.js';
import { collectGarbage } from './collect-garbage.js';
import { median, printTable, slope } from './figures.js';
import { AT_ONCE, waysOf, type AnyPage, type Visits, type Way } from './scraping-ways.js';

const PAGES = Number(process.env['PAGES'] ?? 120);
const ROUNDS = Number(process.env['ROUNDS'] ?? 5);
const ONLY = new RegExp(process.env['ONLY'] ?? '');
/** Milliseconds in which a run begins new pages. */
const RUN_TIME = (1000 / 50) * PAGES;
/** Milliseconds without an end of a page, or of the run, after which it counts as hung. */
const HUNG = 60_000;

leaveNothing();
const site = await serveSite();
const executablePath = await findBrowser();
const local = await startLocalPool({
  pools: [{ name: 'one' }, { name: 'four', size: AT_ONCE }],
  executablePath,
});

if (process.env['MEMORY']) await measureMemory();
else await measureSpeed();
process.exit();

async function measureSpeed(): Promise<void> {
  const all = Object.entries(waysOf(local, executablePath));
  const ways = all.filter(([name]) => ONLY.test(name));
  const rates = new Map(ways.map(([name]) => [name, [] as number[]]));
  // Not counted: these load the libraries, and warm up what all use.
  for (const [name, way] of ways) if (name.includes("'none'")) await rateOf(name, way);
  for (let round = 0; round < ROUNDS; round++) {
    // Taking turns, and in turning order: a busy moment meets all.
    for (const [name, way] of round % 2 === 0 ? ways : ways.toReversed()) {
      rates.get(name)!.push(await rateOf(name, way));
    }
  }
  const against = (name: string, base: string) =>
    rates.has(base) ? (median(rates.get(name)!) / median(rates.get(base)!)).toFixed(2) : '';
  const rows = [...rates].map(([name, values]) => [
    name,
    median(values).toFixed(1),
    `${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`,
    against(name, `${name.startsWith('Playwright') ? 'Playwright' : 'Puppeteer'}, bare loop`),
    against(name, 'puppeteer-cluster, CONCURRENCY_CONTEXT'),
  ]);
  console.log(
    `Up to ${PAGES} pages, ${AT_ONCE} at once, one browser unless said otherwise; medians of ${ROUNDS} rounds.`,
  );
  printTable(['way', 'pages a second', 'from, to', '× bare loop', '× CONCURRENCY_CONTEXT'], rows);
}

/** Pages a second of one run. */
async function rateOf(name: string, way: Way): Promise<number> {
  const ends: number[] = [];
  const hang = new AbortController();
  const timer = setTimeout(() => {
    hang.abort(new Error(`${name} hangs: nothing for ${HUNG / 1000} s, after ${ends.length} pages`));
  }, HUNG);
  const visits: Visits = {
    urls: urls(() => ends.length),
    visit: async (page: AnyPage, url: string) => {
      await page.goto(url);
      await page.title();
      ends.push(performance.now());
      timer.refresh();
    },
  };
  await raceAbort(way(visits), hang.signal);
  clearTimeout(timer);
  return (1000 * (ends.length - AT_ONCE)) / (ends.at(-1)! - ends[AT_ONCE - 1]!);
}

/** At least as many as a rate can be told from. */
function* urls(done: () => number): Generator<string, undefined> {
  const began = performance.now();
  for (let page = 0; page < PAGES; page++) {
    if (performance.now() - began > RUN_TIME && done() > 2 * AT_ONCE) return;
    yield `${site}/${page}`;
  }
}

/** Heap after each thousand of 10,000 small tasks: flat, when nothing is kept of those that are done. */
async function measureMemory(): Promise<void> {
  const inputs = 10_000;
  const pool = new BrowserPool('one', { baseUrl: local.baseUrl, token: local.token });
  const heap: number[] = [];
  const task = ({ page, input }: { page: { evaluate(script: string): Promise<unknown> }; input: number }) =>
    page.evaluate(String(input));
  const numbers = (function* () {
    for (let input = 0; input < inputs; input++) yield input;
  })();
  const options = { concurrency: 1, pagesPerLease: AT_ONCE, isolation: 'none', replays: 'off' } as const;
  let done = 0;
  for await (const outcome of ourPuppeteer.mapPooledBrowsers(pool, numbers, task, options)) {
    if (outcome.status === 'rejected') throw outcome.reason;
    if (++done % 1000 !== 0) continue;
    collectGarbage();
    heap.push(process.memoryUsage().heapUsed / 1024 / 1024);
  }
  const shown = heap.map((megabytes) => megabytes.toFixed(1)).join(', ');
  console.log(
    `Heap in MB after each 1,000 of ${done} tasks: ${shown}; slope ${slope(heap.slice(2)).toFixed(3)} MB per 1,000`,
  );
}

async function serveSite(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'seen=1' });
    response.end(`<title>page</title>${'<p>Some text of a page.</p>'.repeat(200)}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** All browsers have their files below one folder, by which they are found however this process ends. */
function leaveNothing(): void {
  const path = mkdtempSync(join(tmpdir(), 'pb-'));
  process.env['TMPDIR'] = path;
  process.once('exit', () => {
    processesOf(path).forEach(kill);
    rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
}
