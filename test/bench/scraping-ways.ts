import { chromium } from 'playwright-core';
import { Cluster } from 'puppeteer-cluster';
import puppeteer from 'puppeteer-core';
import { BrowserPool, type Isolation } from '../../src/index.js';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import type { LocalPool } from '../../src/local.js';
import * as ourPlaywright from '../../src/playwright.js';
import * as ourPuppeteer from '../../src/puppeteer.js';
import { realSession } from '../support/real-session.js';

/** Pages that are open at once. */
export const AT_ONCE = 4;

export interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
}

/** One run of one way: URLs as they are asked for, and a clock that stands while the browser starts. */
export interface Visits {
  readonly urls: Iterator<string, undefined> & Iterable<string>;
  visit(page: AnyPage, url: string): Promise<void>;
}

/** Opens all pages of a run, and leaves nothing behind. */
export type Way = (visits: Visits) => Promise<void>;

/** @param local With a pool of one browser, `one`, and one of four, `four`. */
export function waysOf(local: LocalPool, executablePath: string): Record<string, Way> {
  const [one, four] = ['one', 'four'].map(
    (name) => new BrowserPool(name, { baseUrl: local.baseUrl, token: local.token }),
  ) as [BrowserPool, BrowserPool];
  const inOne = { pool: one, concurrency: 1, pagesPerLease: AT_ONCE };
  const inFour = { pool: four, concurrency: AT_ONCE, pagesPerLease: 1 };
  const bare = (open: OpenPages) => bareLoop(local, one, open);
  const cluster = (concurrency: number) => clusterOf(concurrency, executablePath);
  return {
    'Playwright, bare loop': bare(openPlaywrightPages),
    "Playwright, ours, 'none'": ours('playwright', 'none', inOne),
    "Playwright, ours, 'storage'": ours('playwright', 'storage', inOne),
    "Playwright, ours, 'context'": ours('playwright', 'context', inOne),
    'Puppeteer, bare loop': bare(openPuppeteerPages),
    "Puppeteer, ours, 'none'": ours('puppeteer', 'none', inOne),
    "Puppeteer, ours, 'storage'": ours('puppeteer', 'storage', inOne),
    "Puppeteer, ours, 'context'": ours('puppeteer', 'context', inOne),
    'puppeteer-cluster, CONCURRENCY_PAGE': cluster(Cluster.CONCURRENCY_PAGE),
    'puppeteer-cluster, CONCURRENCY_CONTEXT': cluster(Cluster.CONCURRENCY_CONTEXT),
    "Playwright, ours, four browsers, 'storage'": ours('playwright', 'storage', inFour),
    "Puppeteer, ours, four browsers, 'storage'": ours('puppeteer', 'storage', inFour),
    "Puppeteer, ours, four browsers, 'context'": ours('puppeteer', 'context', inFour),
    'puppeteer-cluster, CONCURRENCY_BROWSER (four)': cluster(Cluster.CONCURRENCY_BROWSER),
  };
}

function ours(
  library: 'playwright' | 'puppeteer',
  isolation: Isolation,
  { pool, ...shape }: { pool: BrowserPool; concurrency: number; pagesPerLease: number },
): Way {
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

/** What a careless script does: it leases, opens four pages, and goes from URL to URL with each. */
function bareLoop(local: LocalPool, pool: BrowserPool, open: OpenPages): Way {
  return async ({ urls, visit }) => {
    const session = await realSession(local);
    const { pages, close } = await open(String(session['cdp_ws_url']));
    // One iterator, and every page takes its next URL from it.
    const work = async (page: AnyPage) => {
      for (const url of urls) await visit(page, url);
    };
    await Promise.all(pages.map(work));
    await close();
    await pool.release(String(session['session_id']));
  };
}

const openPlaywrightPages: OpenPages = async (endpoint) => {
  const browser = await chromium.connectOverCDP(endpoint);
  const pages = await Promise.all(each(() => browser.contexts()[0]!.newPage()));
  const close = async () => {
    await Promise.all(pages.map((page) => page.close()));
    await browser.close();
  };
  return { pages, close };
};

const openPuppeteerPages: OpenPages = async (browserWSEndpoint) => {
  const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
  const pages = await Promise.all(each(() => browser.newPage()));
  const close = async () => {
    await Promise.all(pages.map((page) => page.close()));
    await browser.disconnect();
  };
  return { pages, close };
};

/** It starts its browsers itself, with the local pool's flags and no others. */
function clusterOf(concurrency: number, executablePath: string): Way {
  const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
  const own = { executablePath, args: poolFlags(), ignoreDefaultArgs: true, defaultViewport: null };
  return async ({ urls, visit }) => {
    const running = await Cluster.launch({
      concurrency,
      maxConcurrency: AT_ONCE,
      puppeteer,
      puppeteerOptions: { ...own, ...signals },
    });
    // What is queued at once can't be taken back when the time is up.
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
    // As many again as run at once: none of them ever waits for work.
    each(queueNext);
    each(queueNext);
    await running.idle();
    await running.close();
    if (failure) throw failure.error;
  };
}

/** Without those that say where the browser keeps its profile and listens. */
function poolFlags(): string[] {
  const flags = chromiumFlags('', { headless: true, viewport: undefined, args: [] });
  return flags.filter((flag) => !/^--(remote-debugging|user-data-dir)/.test(flag));
}

function each<T>(make: () => T): T[] {
  return Array.from({ length: AT_ONCE }, () => make());
}
