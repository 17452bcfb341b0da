/**
 * `npm run bench -- scraping`: pages per second of `mapPooledBrowsers`, of puppeteer-cluster, and of a plain loop that uses
 * its pages again and again. All open the same local pages, four at once in one browser; puppeteer-cluster with the flags
 * of the local pool, and with Puppeteer's own ("as installed"). A rate counts from the end of the fourth page to the end of
 * the last: no start and no lease, but everything between two pages.
 *
 * PAGES (default 120), ROUNDS (default 5), PLAIN=1 (with all features of Chromium, as a service may start its browsers).
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster } from 'puppeteer-cluster';
import puppeteer from 'puppeteer-core';
import { BrowserPool, type Isolation } from '../../src/index.js';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import { findBrowser, startLocalPool } from '../../src/local.js';
import * as playwright from '../../src/playwright.js';
import * as ourPuppeteer from '../../src/puppeteer.js';
import { kill, processesOf } from '../support/processes.js';
import { compare, printComparison, setting } from './bench.js';

const PAGES = setting('PAGES', 120);
const ROUNDS = setting('ROUNDS', 5);
const AT_ONCE = 4;
/** The last flag of a name counts. */
const FLAGS = process.env['PLAIN'] ? ['--disable-features='] : [];
/** Puppeteer's own flags. As root, Chromium needs one more. */
const OWN_FLAGS = { args: ['--no-sandbox'] };

interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
}

/** Opens all URLs, and calls `visit` for each. */
type Crawl = (
  urls: IterableIterator<string>,
  visit: (page: AnyPage, url: string) => Promise<void>,
) => Promise<void>;

// puppeteer-cluster does not end its browsers when this process fails.
const folder = mkdtempSync(join(tmpdir(), 'pb-'));
process.env['TMPDIR'] = folder;
process.once('exit', () => {
  processesOf(folder).forEach(kill);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});
const site = await serveSite();
const executablePath = await findBrowser();
const local = await startLocalPool({ pools: [{ name: 'bench' }], executablePath, args: FLAGS });
const pool = new BrowserPool('bench', { baseUrl: local.baseUrl, token: local.token });

const CRAWLS: Record<string, Crawl> = {
  'Puppeteer, plain loop': plainLoop,
  "Puppeteer, ours, 'none'": ours('puppeteer', 'none'),
  "Puppeteer, ours, 'storage'": ours('puppeteer', 'storage'),
  "Puppeteer, ours, 'context'": ours('puppeteer', 'context'),
  "Playwright, ours, 'none'": ours('playwright', 'none'),
  "Playwright, ours, 'storage'": ours('playwright', 'storage'),
  "Playwright, ours, 'context'": ours('playwright', 'context'),
  'puppeteer-cluster, CONCURRENCY_CONTEXT': cluster({ args: sameFlags(), ignoreDefaultArgs: true }),
  'puppeteer-cluster as installed, CONCURRENCY_CONTEXT': cluster(OWN_FLAGS),
};
const peers = Object.keys(CRAWLS).filter((name) => /plain|cluster/.test(name));

const ways = Object.entries(CRAWLS).map(
  ([name, crawl]) => [name, async () => ({ rate: await rateOf(crawl) })] as const,
);
const subject = `${PAGES} pages, ${AT_ONCE} at once`;
const comparison = { subject, ways: Object.fromEntries(ways), units: { rate: 'pages/s' }, peers };
printComparison(await compare({ ...comparison, rounds: ROUNDS }), peers);
process.exit();

async function rateOf(crawl: Crawl): Promise<number> {
  const ends: number[] = [];
  const urls = Array.from({ length: PAGES }, (_, index) => `${site}/${index}`).values();
  await crawl(urls, async (page, url) => {
    await page.goto(url);
    await page.title();
    ends.push(performance.now());
  });
  return (1000 * (ends.length - AT_ONCE)) / (ends.at(-1)! - ends[AT_ONCE - 1]!);
}

function ours(library: 'playwright' | 'puppeteer', isolation: Isolation): Crawl {
  const options = { concurrency: 1, pagesPerLease: AT_ONCE, isolation, replays: 'off' } as const;
  return async (urls, visit) => {
    const outcomes =
      library === 'playwright'
        ? playwright.mapPooledBrowsers(pool, urls, ({ page, input }) => visit(page, input), options)
        : ourPuppeteer.mapPooledBrowsers(pool, urls, ({ page, input }) => visit(page, input), options);
    for await (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  };
}

/** A short script: leases a browser, opens four pages, and loads one URL after another in each. */
async function plainLoop(...[urls, visit]: Parameters<Crawl>): Promise<void> {
  const { session_id, cdp_ws_url } = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
  const browser = await puppeteer.connect({ browserWSEndpoint: cdp_ws_url, defaultViewport: null });
  const pages = await Promise.all(Array.from({ length: AT_ONCE }, () => browser.newPage()));
  // All pages take their next URL from the same iterator.
  const work = async (page: AnyPage) => {
    for (const url of urls) await visit(page, url);
  };
  await Promise.all(pages.map(work));
  await Promise.all(pages.map((page) => page.close()));
  await browser.disconnect();
  await pool.release(session_id);
}

/** puppeteer-cluster starts its browser itself. */
function cluster(launchOptions: object): Crawl {
  const puppeteerOptions = { executablePath, defaultViewport: null, ...launchOptions };
  const options = { concurrency: Cluster.CONCURRENCY_CONTEXT, maxConcurrency: AT_ONCE, puppeteer };
  return async (urls, visit) => {
    const running = await Cluster.launch({ ...options, puppeteerOptions });
    const errors: unknown[] = [];
    running.on('taskerror', (error) => errors.push(error));
    await running.task(({ page, data }: { page: AnyPage; data: string }) => visit(page, data));
    for (const url of urls) void running.queue(url);
    await running.idle();
    await running.close();
    if (errors.length > 0) throw errors[0];
  };
}

/** The flags of the local pool, except the profile and the port, which puppeteer-cluster chooses. */
function sameFlags(): string[] {
  const flags = chromiumFlags('', { headless: true, viewport: undefined, args: FLAGS });
  return flags.filter((flag) => !/^--(remote-debugging|user-data-dir)/.test(flag));
}

async function serveSite(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'seen=1' });
    response.end(`<title>page</title>${'<p>Some text of a page.</p>'.repeat(200)}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
