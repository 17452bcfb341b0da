/**
 * `npm run bench:scraping`: pages a second of `mapPooledBrowsers`, of puppeteer-cluster, and of a bare loop of each
 * driver over pages that it uses again and again. All open the same local pages, four at once, with the same Chromium
 * and its same flags; ours, and the bare loops, through the local pool's tunnel, puppeteer-cluster straight.
 *
 * PAGES (default 120; 1000 for the long run), ROUNDS (default 5), and MEMORY=1 for the memory over 10,000 inputs.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { Cluster } from 'puppeteer-cluster';
import puppeteer from 'puppeteer-core';
import { BrowserPool } from '../../src/index.js';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import { startLocalPool } from '../../src/local.js';
import * as ourPlaywright from '../../src/playwright.js';
import * as ourPuppeteer from '../../src/puppeteer.js';
import { realSession } from '../support/real-session.js';
import { median, printTable, slope } from './figures.js';

const PAGES = Number(process.env['PAGES'] ?? 120);
const ROUNDS = Number(process.env['ROUNDS'] ?? 5);
const AT_ONCE = 4;

interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
}

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'seen=1' });
  response.end(`<title>page</title>${'<p>Some text of a page.</p>'.repeat(200)}`);
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const executablePath = chromiumPath();
await using local = await startLocalPool({
  pools: [{ name: 'one' }, { name: 'four', size: AT_ONCE }],
  executablePath,
});
const [one, four] = ['one', 'four'].map(
  (name) => new BrowserPool(name, { baseUrl: local.baseUrl, token: local.token }),
);

const WAYS: Record<string, () => Promise<void>> = {
  'Playwright, bare loop': () => bareLoop(openPlaywrightPages),
  "Playwright, ours, isolation 'none'": () => ours('playwright', 'none'),
  "Playwright, ours, isolation 'storage'": () => ours('playwright', 'storage'),
  "Playwright, ours, isolation 'context'": () => ours('playwright', 'context'),
  'Puppeteer, bare loop': () => bareLoop(openPuppeteerPages),
  "Puppeteer, ours, isolation 'none'": () => ours('puppeteer', 'none'),
  "Puppeteer, ours, isolation 'storage'": () => ours('puppeteer', 'storage'),
  "Puppeteer, ours, isolation 'context'": () => ours('puppeteer', 'context'),
  'puppeteer-cluster, CONCURRENCY_PAGE': () => cluster(Cluster.CONCURRENCY_PAGE),
  'puppeteer-cluster, CONCURRENCY_CONTEXT': () => cluster(Cluster.CONCURRENCY_CONTEXT),
  "Puppeteer, ours, four browsers, 'context'": () => ours('puppeteer', 'context', { browsers: AT_ONCE }),
  'puppeteer-cluster, CONCURRENCY_BROWSER (four)': () => cluster(Cluster.CONCURRENCY_BROWSER),
};

if (process.env['MEMORY']) await measureMemory();
else await measureSpeed();
await Promise.all([one!.close(), four!.close()]);
server.close();

async function measureSpeed(): Promise<void> {
  const times = new Map(Object.keys(WAYS).map((way) => [way, [] as number[]]));
  // Not counted: the first of each library loads it, and warms up what all use.
  await WAYS["Playwright, ours, isolation 'none'"]!();
  await WAYS["Puppeteer, ours, isolation 'none'"]!();
  for (let round = 0; round < ROUNDS; round++) {
    // Taking turns, and in turning order: a busy moment meets all.
    const ways = Object.entries(WAYS);
    for (const [way, run] of round % 2 === 0 ? ways : ways.toReversed()) {
      times.get(way)!.push(await timed(run));
    }
  }
  const middle = (way: string) => median(times.get(way)!);
  const against = (way: string, base: string) => (middle(base) / middle(way)).toFixed(2);
  const rows = [...times.keys()].map((way) => [
    way,
    ((1000 * PAGES) / middle(way)).toFixed(1),
    against(way, `${way.startsWith('Playwright') ? 'Playwright' : 'Puppeteer'}, bare loop`),
    against(way, 'puppeteer-cluster, CONCURRENCY_CONTEXT'),
  ]);
  console.log(
    `${PAGES} pages, ${AT_ONCE} at once, one browser unless said otherwise; medians of ${ROUNDS} rounds.`,
  );
  printTable(['way', 'pages a second', '× bare loop', '× CONCURRENCY_CONTEXT'], rows);
}

async function timed(run: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await run();
  return performance.now() - began;
}

function urls(count = PAGES): string[] {
  return Array.from({ length: count }, (_, index) => `${site}/${index}`);
}

/** One browser with four pages, or four browsers. From the first lease to the last release. */
async function ours(
  library: 'playwright' | 'puppeteer',
  isolation: 'none' | 'storage' | 'context',
  { browsers = 1 } = {},
): Promise<void> {
  const [pool, pagesPerLease] = browsers === 1 ? [one!, AT_ONCE] : [four!, 1];
  const options = { concurrency: browsers, pagesPerLease, isolation, replays: 'off' } as const;
  const outcomes =
    library === 'playwright'
      ? ourPlaywright.mapPooledBrowsers(pool, urls(), ({ page, input }) => visit(page, input), options)
      : ourPuppeteer.mapPooledBrowsers(pool, urls(), ({ page, input }) => visit(page, input), options);
  let done = 0;
  for await (const { status } of outcomes) if (status === 'fulfilled') done++;
  if (done !== PAGES) throw new Error(`${PAGES - done} pages failed`);
}

async function visit(page: AnyPage, url: string): Promise<string> {
  await page.goto(url);
  return page.title();
}

/** What a careless script does: it leases, opens four pages, and goes from URL to URL with each. */
async function bareLoop(
  open: (url: string) => Promise<{ pages: AnyPage[]; close: () => Promise<unknown> }>,
): Promise<void> {
  const session = await realSession(local);
  const { pages, close } = await open(String(session['cdp_ws_url']));
  const queue = urls().values();
  // One iterator, and every page takes its next URL from it.
  const work = async (page: AnyPage) => {
    for (const url of queue) await visit(page, url);
  };
  await Promise.all(pages.map(work));
  await close();
  await one!.release(String(session['session_id']));
}

async function openPlaywrightPages(endpoint: string) {
  const browser = await chromium.connectOverCDP(endpoint);
  const pages = await Promise.all(urls(AT_ONCE).map(() => browser.contexts()[0]!.newPage()));
  const close = async () => {
    await Promise.all(pages.map((page) => page.close()));
    await browser.close();
  };
  return { pages, close };
}

async function openPuppeteerPages(browserWSEndpoint: string) {
  const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
  const pages = await Promise.all(urls(AT_ONCE).map(() => browser.newPage()));
  const close = async () => {
    await Promise.all(pages.map((page) => page.close()));
    await browser.disconnect();
  };
  return { pages, close };
}

async function cluster(concurrency: number): Promise<void> {
  const running = await Cluster.launch({
    concurrency,
    maxConcurrency: AT_ONCE,
    puppeteer,
    // The local pool's flags and no others.
    puppeteerOptions: { executablePath, args: poolFlags(), ignoreDefaultArgs: true, defaultViewport: null },
  });
  let done = 0;
  await running.task(async ({ page, data }: { page: AnyPage; data: string }) => {
    await visit(page, data);
    done++;
  });
  for (const url of urls()) void running.queue(url);
  await running.idle();
  await running.close();
  if (done !== PAGES) throw new Error(`${PAGES - done} pages failed`);
}

/** Heap after each thousand of 10,000 small tasks: flat, when nothing is kept of those that are done. */
async function measureMemory(): Promise<void> {
  const inputs = 10_000;
  const heap: number[] = [];
  const task = ({ page, input }: { page: { evaluate(script: string): Promise<unknown> }; input: number }) =>
    page.evaluate(String(input));
  const numbers = (function* () {
    for (let input = 0; input < inputs; input++) yield input;
  })();
  const options = { concurrency: 1, pagesPerLease: AT_ONCE, isolation: 'none', replays: 'off' } as const;
  let done = 0;
  for await (const { status } of ourPuppeteer.mapPooledBrowsers(one!, numbers, task, options)) {
    if (status === 'fulfilled' && ++done % 1000 !== 0) continue;
    globalThis.gc?.();
    heap.push(process.memoryUsage().heapUsed / 1024 / 1024);
  }
  const shown = heap.map((megabytes) => megabytes.toFixed(1)).join(', ');
  console.log(
    `Heap in MB after each 1,000 of ${done} tasks: ${shown}; slope ${slope(heap.slice(2)).toFixed(3)} MB per 1,000`,
  );
}

/** Without those that say where the browser keeps its profile and listens. */
function poolFlags(): string[] {
  const flags = chromiumFlags('', { headless: true, viewport: undefined, args: [] });
  return flags.filter((flag) => !/^--(remote-debugging|user-data-dir)/.test(flag));
}

/** The one that the drivers and the pool are to share. */
function chromiumPath(): string {
  return process.env['CHROME_PATH'] ?? '/usr/bin/chromium';
}
