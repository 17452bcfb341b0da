/**
 * `npm run bench:scraping`: pages per second of `mapPooledBrowsers`, of puppeteer-cluster, and of a plain loop of each
 * automation library that uses its pages again and again. All open the same local pages, four at once; ours and the plain
 * loops through the local pool, puppeteer-cluster directly, with the same flags of Chromium and with Puppeteer's own.
 *
 * PAGES (default 120), ROUNDS (default 5), ONLY (a regular expression for the names of the ways), MEMORY=1 (the memory
 * of 10,000 inputs instead), PLAIN=1 (with all features of Chromium, as a service may start its browsers).
 *
 * A run ends after PAGES pages or PAGES/50 seconds, so that slow ways do not take minutes. A rate counts from the end
 * of the fourth page to the end of the last: no start and no lease, but everything between two pages.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { Cluster } from 'puppeteer-cluster';
import puppeteer from 'puppeteer-core';
import { BrowserPool, type Isolation } from '../../src/index.js';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import { findBrowser, startLocalPool } from '../../src/local.js';
import * as ourPlaywright from '../../src/playwright.js';
import * as ourPuppeteer from '../../src/puppeteer.js';
import { raceAbort } from '../../src/shared/abort.js';
import { kill, processesOf } from '../support/processes.js';
import { compare, memoryInUse, printComparison, setting, slope } from './bench.js';

const PAGES = setting('PAGES', 120);
const ROUNDS = setting('ROUNDS', 5);
const ONLY = new RegExp(process.env['ONLY'] ?? '');
/** The last flag of a name counts. */
const FLAGS = process.env['PLAIN'] ? ['--disable-features='] : [];
const AT_ONCE = 4;
const SIGNALS = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
/** Puppeteer's own flags. As root, Chromium needs one more. */
const OWN_FLAGS = { args: ['--no-sandbox'] };
/** Milliseconds in which a run begins new pages. */
const RUN_TIME = (1000 / 50) * PAGES;
/** Milliseconds without progress after which a run counts as hung. */
const HUNG = 60_000;

interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
}

/** The URLs of one run, and the work for each. */
interface Visits {
  readonly urls: Iterator<string, undefined> & Iterable<string>;
  visit(page: AnyPage, url: string): Promise<void>;
}

/** Opens all pages of a run, and leaves nothing. */
type Crawl = (visits: Visits) => Promise<void>;

leaveNothing();
const site = await serveSite();
const executablePath = await findBrowser();
const pools = [{ name: 'one' }, { name: 'four', size: AT_ONCE }];
const local = await startLocalPool({ pools, executablePath, args: FLAGS });
const [one, four] = pools.map(
  ({ name }) => new BrowserPool(name, { baseUrl: local.baseUrl, token: local.token }),
);
const inOne = { pool: one!, concurrency: 1, pagesPerLease: AT_ONCE };
const inFour = { pool: four!, concurrency: AT_ONCE, pagesPerLease: 1 };

const CRAWLS: Record<string, Crawl> = {
  'Playwright, plain loop': plainLoop(openPlaywrightPages),
  "Playwright, ours, 'none'": ours('playwright', 'none', inOne),
  "Playwright, ours, 'storage'": ours('playwright', 'storage', inOne),
  "Playwright, ours, 'context'": ours('playwright', 'context', inOne),
  'Puppeteer, plain loop': plainLoop(openPuppeteerPages),
  "Puppeteer, ours, 'none'": ours('puppeteer', 'none', inOne),
  "Puppeteer, ours, 'storage'": ours('puppeteer', 'storage', inOne),
  "Puppeteer, ours, 'context'": ours('puppeteer', 'context', inOne),
  'puppeteer-cluster, CONCURRENCY_PAGE': cluster(Cluster.CONCURRENCY_PAGE),
  'puppeteer-cluster, CONCURRENCY_CONTEXT': cluster(Cluster.CONCURRENCY_CONTEXT),
  'puppeteer-cluster as installed, CONCURRENCY_CONTEXT': cluster(Cluster.CONCURRENCY_CONTEXT, OWN_FLAGS),
  'bare CDP, a context each': bareContexts,
  "Playwright, ours, four browsers, 'storage'": ours('playwright', 'storage', inFour),
  "Puppeteer, ours, four browsers, 'storage'": ours('puppeteer', 'storage', inFour),
  "Puppeteer, ours, four browsers, 'context'": ours('puppeteer', 'context', inFour),
  'puppeteer-cluster, CONCURRENCY_BROWSER (four)': cluster(Cluster.CONCURRENCY_BROWSER),
};
const PEERS = [
  'Puppeteer, plain loop',
  'puppeteer-cluster, CONCURRENCY_CONTEXT',
  'puppeteer-cluster as installed, CONCURRENCY_CONTEXT',
];

if (process.env['MEMORY']) await measureMemory();
else {
  const chosen = Object.entries(CRAWLS).filter(([name]) => ONLY.test(name));
  const ways = chosen.map(
    ([name, crawl]) => [name, async () => ({ rate: await rateOf(name, crawl) })] as const,
  );
  const subject = `up to ${PAGES} pages, ${AT_ONCE} at once`;
  const units = { rate: 'pages/s' };
  printComparison(
    await compare({ subject, ways: Object.fromEntries(ways), units, peers: PEERS, rounds: ROUNDS }),
    PEERS,
  );
}
process.exit();

/** Pages per second of one run. */
async function rateOf(name: string, crawl: Crawl): Promise<number> {
  const ends: number[] = [];
  const hang = new AbortController();
  const timer = setTimeout(() => {
    hang.abort(new Error(`${name} made no progress for ${HUNG / 1000} s, after ${ends.length} pages`));
  }, HUNG);
  const visit = async (page: AnyPage, url: string) => {
    await page.goto(url);
    await page.title();
    ends.push(performance.now());
    timer.refresh();
  };
  await raceAbort(crawl({ urls: urls(() => ends.length), visit }), hang.signal);
  clearTimeout(timer);
  return (1000 * (ends.length - AT_ONCE)) / (ends.at(-1)! - ends[AT_ONCE - 1]!);
}

/** At least twice as many as are open at once, so that there is a rate. */
function* urls(done: () => number): Generator<string, undefined> {
  const began = performance.now();
  for (let page = 0; page < PAGES; page++) {
    if (performance.now() - began > RUN_TIME && done() > 2 * AT_ONCE) return;
    yield `${site}/${page}`;
  }
}

function ours(
  library: 'playwright' | 'puppeteer',
  isolation: Isolation,
  { pool, ...shape }: { pool: BrowserPool; concurrency: number; pagesPerLease: number },
): Crawl {
  const options = { ...shape, isolation, replays: 'off' } as const;
  return async ({ urls, visit }) => {
    const outcomes =
      library === 'playwright'
        ? ourPlaywright.mapPooledBrowsers(pool, urls, ({ page, input }) => visit(page, input), options)
        : ourPuppeteer.mapPooledBrowsers(pool, urls, ({ page, input }) => visit(page, input), options);
    for await (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  };
}

type OpenPages = (endpoint: string) => Promise<{ pages: AnyPage[]; close: () => Promise<unknown> }>;

/** A short script: leases a browser, opens four pages, and loads one URL after another in each. */
function plainLoop(open: OpenPages): Crawl {
  return async ({ urls, visit }) => {
    const { session_id, cdp_ws_url } = (await one!.acquire({ acquire_timeout_seconds: 30 }))!;
    const { pages, close } = await open(cdp_ws_url);
    // All pages take their next URL from the same iterator.
    const work = async (page: AnyPage) => {
      for (const url of urls) await visit(page, url);
    };
    await Promise.all(pages.map(work));
    await close();
    await one!.release(session_id);
  };
}

async function openPlaywrightPages(endpoint: string): ReturnType<OpenPages> {
  const browser = await chromium.connectOverCDP(endpoint);
  const pages = await Promise.all(each(() => browser.contexts()[0]!.newPage()));
  const closePages = () => Promise.all(pages.map((page) => page.close()));
  return { pages, close: () => closePages().then(() => browser.close()) };
}

async function openPuppeteerPages(browserWSEndpoint: string): ReturnType<OpenPages> {
  const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
  const pages = await Promise.all(each(() => browser.newPage()));
  const closePages = () => Promise.all(pages.map((page) => page.close()));
  return { pages, close: () => closePages().then(() => browser.disconnect()) };
}

/**
 * The fewest commands that load a page in a separate context: what no library can go below. Eight at once keep the
 * processor busy.
 */
async function bareContexts({ urls, visit }: Visits): Promise<void> {
  const { session_id, cdp_ws_url } = (await one!.acquire({ acquire_timeout_seconds: 30 }))!;
  const { connection, close } = await openConnection(cdp_ws_url);
  const work = async () => {
    for (const url of urls) {
      const { browserContextId } = await connection.send('Target.createBrowserContext');
      const { targetId } = await connection.send('Target.createTarget', {
        url: 'about:blank',
        browserContextId,
      });
      const session = await connection.createSession({ targetId, type: 'page' } as never);
      await session.send('Page.enable');
      const loaded = new Promise((resolve) => session.once('Page.loadEventFired', resolve));
      const goto = async () => Promise.all([session.send('Page.navigate', { url }), loaded]);
      const title = async () => {
        const { result } = await session.send('Runtime.evaluate', { expression: 'document.title' });
        return String(result.value);
      };
      await visit({ goto, title }, url);
      await connection.send('Target.disposeBrowserContext', { browserContextId });
    }
  };
  await Promise.all([...each(work), ...each(work)]);
  await close();
  await one!.release(session_id);
}

/** Puppeteer's connection without its pages. */
async function openConnection(browserWSEndpoint: string) {
  const browser = await puppeteer.connect({
    browserWSEndpoint,
    defaultViewport: null,
    targetFilter: (target) => target.type() === 'browser',
  });
  const connection = (await browser.target().createCDPSession()).connection()!;
  return { connection, close: () => browser.disconnect() };
}

/** puppeteer-cluster starts its browsers itself, by default with exactly the flags of the local pool. */
function cluster(concurrency: number, launchOptions: object = sameFlags()): Crawl {
  const puppeteerOptions = { executablePath, defaultViewport: null, ...SIGNALS, ...launchOptions };
  return async ({ urls, visit }) => {
    const running = await Cluster.launch({
      concurrency,
      maxConcurrency: AT_ONCE,
      puppeteer,
      puppeteerOptions,
    });
    // URLs that are queued cannot be taken back when the time is up, so each is queued when a page ends.
    const queueNext = () => {
      const { done, value } = urls.next();
      if (!done) void running.queue(value);
    };
    let failure: { error: unknown } | undefined;
    running.on('taskerror', (error) => (failure ??= { error }));
    await running.task(async ({ page, data }: { page: AnyPage; data: string }) => {
      await visit(page, data);
      queueNext();
    });
    // Twice as many as run at once, so that no page ever waits for work.
    each(queueNext);
    each(queueNext);
    await running.idle();
    await running.close();
    if (failure) throw failure.error;
  };
}

function sameFlags(): object {
  const flags = chromiumFlags('', { headless: true, viewport: undefined, args: FLAGS });
  // puppeteer-cluster chooses the profile and the port itself.
  const args = flags.filter((flag) => !/^--(remote-debugging|user-data-dir)/.test(flag));
  return { args, ignoreDefaultArgs: true };
}

function each<T>(make: () => T): T[] {
  return Array.from({ length: AT_ONCE }, () => make());
}

/** Heap after each 1,000 of 10,000 small tasks. It does not grow if nothing of finished tasks is retained. */
async function measureMemory(): Promise<void> {
  const heap: number[] = [];
  const task = ({ page, input }: { page: { evaluate(script: string): Promise<unknown> }; input: number }) =>
    page.evaluate(String(input));
  const options = { concurrency: 1, pagesPerLease: AT_ONCE, isolation: 'none', replays: 'off' } as const;
  const inputs = Array(10_000).keys();
  let done = 0;
  for await (const outcome of ourPuppeteer.mapPooledBrowsers(one!, inputs, task, options)) {
    if (outcome.status === 'rejected') throw outcome.reason;
    if (++done % 1000 === 0) heap.push(memoryInUse().heap / 2 ** 20);
  }
  const shown = heap.map((megabytes) => megabytes.toFixed(1)).join(', ');
  const growth = slope(heap.slice(2)).toFixed(3);
  console.log(`Heap in MB after each 1,000 of ${done} tasks: ${shown}; slope ${growth} MB per 1,000`);
}

async function serveSite(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'seen=1' });
    response.end(`<title>page</title>${'<p>Some text of a page.</p>'.repeat(200)}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** All browsers keep their files in one folder, by which they are found and ended however this process ends. */
function leaveNothing(): void {
  const path = mkdtempSync(join(tmpdir(), 'pb-'));
  process.env['TMPDIR'] = path;
  process.once('exit', () => {
    processesOf(path).forEach(kill);
    rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
