/**
 * `npm run bench:map-distance`: the tasks of `mapPooledBrowsers` when the browser is far away: TLS and a proxy that delays
 * every byte. The peer is a loop over one page that is used again and again. Two figures: the serial round trips of a task
 * besides those of the loop (one task at a time; the time that each ms of delay adds), and tasks per second, four at once,
 * with a round trip of DELAY ms (default 50). TASKS for each that runs at once (default 40); the
 * first half opens the pages, and does not count.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { BrowserPool, type Isolation } from 'pooled-browser';
import * as ourPlaywright from 'pooled-browser/playwright';
import * as ourPuppeteer from 'pooled-browser/puppeteer';
import { median, percentile, printTable, servePool, setting } from './bench.js';
import { DelayProxy } from './delay-proxy.js';

const TASKS = setting('TASKS', 40);
const DELAY = setting('DELAY', 50);
/** A long delay, for which the work of the processor does not count. */
const LONG = 200;
// The certificate of the proxy is its own.
process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';

interface AnyPage {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
}

/** Runs `TASKS` tasks in each lane, and returns the time of each end in ms. */
type Crawl = (lanes: number) => Promise<number[]>;

await using served = await servePool();
await using proxy = await DelayProxy.to(served.service);
const site = await serveSite();
const pool = new BrowserPool('bench', { ...served.service, baseUrl: proxy.baseUrl });
const visit = async (page: AnyPage) => {
  await page.goto(site);
  await page.title();
  return performance.now();
};

const LIBRARIES: Record<string, { loop: Crawl; ours: (isolation: Isolation) => Crawl }> = {
  Playwright: {
    loop: plainLoop(async (endpoint) => {
      const browser = await chromium.connectOverCDP(endpoint);
      const open = async (): Promise<AnyPage> => browser.contexts()[0]!.newPage();
      return { open, close: () => browser.close() };
    }),
    ours: (isolation) => (lanes) =>
      ends(
        ourPlaywright.mapPooledBrowsers(pool, Array(lanes * TASKS).keys(), ({ page }) => visit(page), {
          ...shape(lanes),
          isolation,
        }),
      ),
  },
  Puppeteer: {
    loop: plainLoop(async (browserWSEndpoint) => {
      const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
      return { open: () => browser.newPage(), close: () => browser.disconnect() };
    }),
    ours: (isolation) => (lanes) =>
      ends(
        ourPuppeteer.mapPooledBrowsers(pool, Array(lanes * TASKS).keys(), ({ page }) => visit(page), {
          ...shape(lanes),
          isolation,
        }),
      ),
  },
};

const rows: string[][] = [];
for (const [library, { loop, ours }] of Object.entries(LIBRARIES)) {
  const own = await measure(loop);
  rows.push([library, 'a loop over its pages', own.trips.toFixed(1), '', `${own.rate.toFixed(1)}/s`, '']);
  for (const isolation of ['none', 'storage', 'context'] as const) {
    const { trips, rate, spread } = await measure(ours(isolation));
    const [added, ratio] = [withSign(trips - own.trips), `×${(rate / own.rate).toFixed(2)}`];
    rows.push([library, `'${isolation}'`, trips.toFixed(1), added, `${rate.toFixed(1)}/s, ${ratio}`, spread]);
  }
}
const head = ['library', 'way', 'round trips of a task', 'against the loop', `rate at ${DELAY} ms`];
printTable([...head, 'ms between two tasks, p5 to p95'], rows);
await pool.close();
await proxy[Symbol.asyncDispose]();
await served[Symbol.asyncDispose]();
process.exit();

async function measure(crawl: Crawl): Promise<{ trips: number; rate: number; spread: string }> {
  const times: number[] = [];
  for (const delay of [0, LONG]) {
    proxy.roundTrip = delay;
    times.push(median(gaps(await crawl(1))));
  }
  proxy.roundTrip = DELAY;
  const busy = gaps(await crawl(4));
  const spread = [5, 95].map((percent) => percentile(busy, percent).toFixed(0)).join(' to ');
  const rate = (1000 * busy.length) / busy.reduce((sum, gap) => sum + gap, 0);
  return { trips: (times[1]! - times[0]!) / LONG, rate, spread };
}

function withSign(difference: number): string {
  const rounded = Math.round(difference * 10) / 10;
  return `${rounded > 0 ? '+' : ''}${rounded}`;
}

function gaps(times: readonly number[]): number[] {
  const sorted = times.toSorted((a, b) => a - b).slice(times.length / 2);
  return sorted.slice(1).map((time, index) => time - sorted[index]!);
}

function shape(lanes: number) {
  return { concurrency: 1, pagesPerLease: lanes, replays: 'off', acquireTimeout: 60_000 } as const;
}

async function ends(outcomes: ReturnType<typeof ourPlaywright.mapPooledBrowsers<number, number>>) {
  const times: number[] = [];
  for await (const outcome of outcomes) {
    if (outcome.status === 'rejected') throw outcome.reason;
    times.push(outcome.value);
  }
  return times;
}

function plainLoop(
  connect: (endpoint: string) => Promise<{ open: () => Promise<AnyPage>; close: () => Promise<unknown> }>,
): Crawl {
  return async (lanes) => {
    const { session_id, cdp_ws_url } = (await pool.acquire({ acquire_timeout_seconds: 60 }))!;
    const { open, close } = await connect(cdp_ws_url);
    const times: number[] = [];
    const work = async () => {
      const page = await open();
      while (times.length < lanes * TASKS) times.push(await visit(page));
    };
    await Promise.all(Array.from({ length: lanes }, work));
    await close();
    await pool.release(session_id, { reuse: false });
    return times;
  };
}

async function serveSite(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
