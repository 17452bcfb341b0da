import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { Site } from '../../support/site.js';
import { drive, serveSite, startApi } from '../support.js';
import { borrow, page as html, Replays } from './support.js';

const api = await startApi({
  pools: [{ timeoutSeconds: 600 }, { name: 'console', telemetry: { console: true }, timeoutSeconds: 600 }],
});
const replays = new Replays(api);
const site = await serveSite({
  '/start': '<title>shop</title>',
  '/start?code=geheim-2': '<title>shop</title>',
  '/page': '<img src="/image"><iframe src="/frame"></iframe>',
});

const FORM = html(`<button id="buy" onclick="console.log('bought', 1)">Buy now</button><input id="card">`);

it('has pages, navigations, clicks, keys, console messages and errors in order', async () => {
  const timeline = await record('default', async (page, kinds) => {
    await page.goto(`${site}/start`);
    await page.goto(FORM);
    await page.click('#buy');
    await page.locator('#card').pressSequentially('hunter2');
    await page.evaluate(() => void setTimeout(() => Promise.reject(new Error('out of stock'))));
    await page.evaluate(() => fetch('http://127.0.0.1:9/').catch(() => {}));
    const other = await page.context().newPage();
    await other.close();
    await expect.poll(kinds).toEqual(expect.arrayContaining(ALL));
  });
  const textOf = (wanted: string) => timeline.find(({ kind }) => kind === wanted)?.text;
  expect(textOf('click')).toBe('button#buy Buy now');
  expect(textOf('key')).toBe('input#card');
  expect(textOf('console')).toBe('log: bought 1');
  expect(textOf('page-error')).toContain('out of stock');
  expect(timeline.at(-1)?.text).toBe('It was stopped.');
  const times = timeline.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

it('has the status of navigations, and each failed request once', async () => {
  const timeline = await record('default', async (page, kinds) => {
    await page.goto(`${site}/page`);
    await page.goto(`${site}/missing`);
    await page.goto('http://127.0.0.1:9/').catch(() => {});
    await expect.poll(async () => (await kinds()).filter((kind) => kind === 'navigation').length).toBe(3);
  });
  const entries = timeline.filter(({ kind }) => kind === 'navigation' || kind === 'request-failed');
  expect(entries.map(({ kind, status, text }) => `${kind}: ${status} ${text}`).toSorted()).toEqual([
    `navigation: 200 OK ${site}/page`,
    `navigation: 404 Not Found ${site}/missing`,
    'navigation: net::ERR_UNSAFE_PORT http://127.0.0.1:9/',
    `request-failed: 404 Not Found ${site}/frame`,
    `request-failed: 404 Not Found ${site}/image`,
  ]);
  expect(timeline.map(({ kind }) => kind)).not.toContain('console');
});

it('shows where a redirect came from, with its status and without its secrets', async () => {
  await using other = await Site.open(({ url }, response) => {
    const to = url === '/old?token=geheim-1' ? '/newer' : `${site}/start?code=geheim-2`;
    if (url === '/image') response.writeHead(302, { location: `${site}/image` }).end();
    else if (url !== '/frame') response.writeHead(url === '/newer' ? 307 : 301, { location: to }).end();
    else response.writeHead(302, { location: `${site}/start` }).end();
  });
  const timeline = await record('default', async (page, kinds) => {
    await page.goto(`${other.url}/old?token=geheim-1`);
    await page.setContent(`<iframe src="${other.url}/frame"></iframe><img src="${other.url}/image">`);
    await expect.poll(async () => (await kinds()).filter((kind) => kind === 'navigation').length).toBe(3);
  });
  const navigations = timeline.filter(({ kind }) => kind === 'navigation');
  expect(navigations.map(({ status, text }) => `${status} ${text}`)).toEqual([
    `301 Moved Permanently ${other.url}/old?token=[redacted] → ${other.url}/newer`,
    `307 Temporary Redirect ${other.url}/newer → ${site}/start?code=hidden`,
    `200 OK ${site}/start?code=hidden`,
  ]);
});

it('contains no typed text, and no secrets of URLs', async () => {
  const timeline = await record('default', async (page, kinds) => {
    const { host } = new URL(site);
    await page.goto(
      `http://anna:geheim-1@${host}/start?jwt=geheim-2&api_key=geheim-3&page=4#access_token=geheim-5`,
    );
    await page.evaluate(() => console.log('Authorization: Bearer geheim-6'));
    await page.goto(FORM);
    await page.locator('#card').pressSequentially('geheim-7');
    await expect.poll(kinds).toEqual(expect.arrayContaining(['key', 'console']));
  });
  expect(JSON.stringify(timeline)).not.toContain('geheim');
  expect(JSON.stringify(timeline)).toContain('page=4');
});

it('contains only the enabled categories, and limits the number and the length of its entries', async () => {
  const timeline = await record('console', async (page, kinds) => {
    await page.goto(FORM);
    await page.click('#buy');
    await page.evaluate(() => {
      for (let line = 0; line < 8_500; line++) console.log('x'.repeat(5_000));
    });
    await expect.poll(async () => (await kinds()).length).toBe(8_000);
  });
  expect(timeline).toHaveLength(8_001);
  expect(new Set(timeline.map(({ kind }) => kind))).toEqual(new Set(['console', 'recording-ended']));
  expect(Math.max(...timeline.map(({ text }) => text.length))).toBeLessThan(310);
});

it('is announced in the session with nine categories, or null', async () => {
  const { telemetry } = await borrow(api, 'console');
  const categories = Object.entries(telemetry?.browser ?? {});
  expect(categories).toHaveLength(9);
  const enabled = categories.filter(([, { enabled }]) => enabled);
  expect(enabled.map(([category]) => category)).toEqual(['console']);
  expect((await borrow(api)).telemetry).toBeNull();
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

/** Records a browser while `fn` uses its page, and returns the timeline. `kinds`: of its entries so far. */
async function record(
  pool: string,
  fn: (page: Page, kinds: () => Promise<string[]>) => Promise<unknown>,
): Promise<Awaited<ReturnType<typeof replays.facts>>['timeline']> {
  const session = await borrow(api, pool);
  const { replay_id } = await replays.record(session, (id) =>
    drive(session, (page) =>
      fn(page, async () => (await replays.facts(session, id)).timeline.map(({ kind }) => kind)),
    ),
  );
  return (await replays.facts(session, replay_id!)).timeline;
}
