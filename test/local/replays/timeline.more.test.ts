import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { findBrowser } from '../../../src/local.js';
import { launchChromium, type Chromium } from '../../../src/local/browser/chromium.js';
import { Lease, PooledChromium } from '../../../src/local/pool/lease.js';
import { Recorder } from '../../../src/local/replays/recorder.js';
import type { Recording } from '../../../src/local/replays/recording.js';
import type { TimelineEntry } from '../../../src/local/replays/timeline.js';
import type { TelemetryCategory } from '../../../src/service/wire.js';
import { startApi } from '../support.js';
import { serveCdp } from '../../support/serve-cdp.js';
import { page as html } from './support.js';

const LIMITS = { folder: undefined, maxBytes: 1e9, maxTotalBytes: 1e9, keep: 10 };
const server = createServer((_request, response) => response.end('<title>shop</title>'));
let browser: Chromium;
let recorder: Recorder;
let shop: string;

beforeAll(async () => {
  const executablePath = await findBrowser();
  const launch = (signal: AbortSignal) =>
    launchChromium({ executablePath, args: [], headless: true }, signal);
  browser = await launch(new AbortController().signal);
  recorder = new Recorder({ limits: LIMITS, launch, log: () => {} });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  shop = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await recorder.close();
  await browser.kill();
  server.closeAllConnections();
  server.close();
});

const FORM = html(`<button id="buy" onclick="console.log('bought', 1)">Buy now</button><input id="card">`);

it('has pages, navigations, clicks, keys, console messages and errors in order', async () => {
  const replay = await record(undefined, async (page, { timeline }) => {
    await page.goto(`http://${shop}/start`);
    await page.goto(FORM);
    await page.click('#buy');
    await page.locator('#card').pressSequentially('hunter2');
    await page.evaluate(() => void setTimeout(() => Promise.reject(new Error('out of stock'))));
    await page.evaluate(() => fetch('http://127.0.0.1:9/').catch(() => {}));
    const other = await page.context().newPage();
    await other.close();
    await expect.poll(() => timeline.filter(({ kind }) => kind === 'page-closed')).toHaveLength(1);
    await expect.poll(() => kindsOf(timeline)).toEqual(expect.arrayContaining(ALL));
  });
  expect(replay.timeline.find(({ kind }) => kind === 'click')?.text).toBe('button#buy Buy now');
  expect(replay.timeline.find(({ kind }) => kind === 'key')?.text).toBe('input#card');
  expect(replay.timeline.find(({ text }) => text.includes('bought'))?.text).toBe('log: bought 1');
  expect(replay.timeline.find(({ kind }) => kind === 'page-error')?.text).toContain('out of stock');
  expect(replay.timeline.at(-1)?.text).toBe('It was stopped.');
  const times = replay.timeline.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

it('has the status of navigations, and each failed request once', async () => {
  const site = createServer(({ url }, response) => {
    const isPage = url === '/page';
    response.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' });
    response.end(isPage ? '<img src="/image"><iframe src="/frame"></iframe>' : 'Not found');
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const replay = await record(undefined, async (page, { timeline }) => {
    await page.goto(`${origin}/page`);
    await page.goto(`${origin}/missing`);
    await page.goto('http://127.0.0.1:9/').catch(() => {});
    await expect.poll(() => timeline.filter(({ status }) => status?.startsWith('net::'))).toHaveLength(1);
  });
  const entries = replay.timeline.filter(({ kind }) => kind === 'navigation' || kind === 'request-failed');
  expect(entries.map(({ kind, status, text }) => `${kind}: ${status} ${text}`).toSorted()).toEqual([
    `navigation: 200 OK ${origin}/page`,
    `navigation: 404 Not Found ${origin}/missing`,
    'navigation: net::ERR_UNSAFE_PORT http://127.0.0.1:9/',
    `request-failed: 404 Not Found ${origin}/frame`,
    `request-failed: 404 Not Found ${origin}/image`,
  ]);
  expect(kindsOf(replay.timeline)).not.toContain('console');
});

it('contains no typed text, and no secrets of URLs', async () => {
  const replay = await record(undefined, async (page, { timeline }) => {
    await page.goto(
      `http://anna:geheim-1@${shop}/a?jwt=geheim-2&api_key=geheim-3&page=4#access_token=geheim-5`,
    );
    await page.evaluate(() => console.log('Authorization: Bearer geheim-6'));
    await page.goto(FORM);
    await page.locator('#card').pressSequentially('geheim-7');
    await expect.poll(() => kindsOf(timeline)).toEqual(expect.arrayContaining(['key', 'console']));
  });
  expect(JSON.stringify(replay.timeline)).not.toContain('geheim');
  expect(JSON.stringify(replay.timeline)).toContain('page=4');
});

it('contains only the enabled categories', async () => {
  const replay = await record(['console'], async (page, { timeline }) => {
    await page.goto(FORM);
    await page.click('#buy');
    await expect.poll(() => kindsOf(timeline)).toContain('console');
  });
  expect(new Set(kindsOf(replay.timeline))).toEqual(new Set(['console', 'recording-ended']));
});

it('limits the number and the length of its entries', async () => {
  const replay = await record(['console'], async (page, { timeline }) => {
    await page.evaluate(() => {
      for (let line = 0; line < 2_500; line++) console.log('x'.repeat(5_000));
    });
    await expect.poll(() => timeline).toHaveLength(2_000);
  });
  expect(replay.timeline).toHaveLength(2_001);
  expect(Math.max(...replay.timeline.map(({ text }) => text.length))).toBeLessThan(310);
});

it('is announced in the session with nine categories, or null', async () => {
  const api = await startApi({
    pools: [{ name: 'with', telemetry: { console: true } }, { name: 'without' }],
  });
  const session = await api.lease({}, 'with');
  const enabled = Object.entries(session.telemetry?.browser ?? {}).filter((entry) => entry[1].enabled);
  expect(Object.keys(session.telemetry?.browser ?? {})).toHaveLength(9);
  expect(enabled.map(([category]) => category)).toEqual(['console']);
  expect((await api.lease({}, 'without')).telemetry).toBeNull();
});

const ALL = [
  'page-opened',
  'navigation',
  'click',
  'console',
  'key',
  'page-error',
  'request-failed',
  'page-closed',
];

function kindsOf(timeline: readonly TimelineEntry[]): string[] {
  return timeline.map(({ kind }) => kind);
}

/** Records a browser while `fn` uses its page. */
async function record(
  telemetry: readonly TelemetryCategory[] | undefined,
  fn: (page: Page, replay: Recording) => Promise<unknown>,
): Promise<Recording> {
  const lease = new Lease(new PooledChromium(browser), {}, 1e9, () => {});
  const recording = await recorder.start(lease, { pool: 'test', telemetry, request: { framerate: 5 } });
  const served = await serveCdp(lease);
  const driver = await chromium.connectOverCDP(served.url);
  try {
    await fn(driver.contexts()[0]!.pages()[0]!, recording);
  } finally {
    await driver.close();
    served.close();
    await recording.stop('stopped');
    lease.end();
  }
  return recording;
}
