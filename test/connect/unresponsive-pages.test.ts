import { beforeEach, expect, it, vi } from 'vitest';
import { Socket } from '../../src/connect/socket.js';
import { closeUnresponsivePages } from '../../src/connect/unresponsive-pages.js';
import { UNREACHABLE } from '../support/fake-service.js';
import { PlayedBrowser, playPages, settle, until } from '../support/played-browser.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';

let browser: PlayedBrowser;
let told: string[][];

beforeEach(async () => {
  browser = await PlayedBrowser.start();
  told = [];
  useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  return async () => {
    useRealClock();
    await browser[Symbol.asyncDispose]();
  };
});

function watch(connectTimeout = 30_000, url = browser.url) {
  const open = (signal: AbortSignal) => Socket.open(new URL(url), signal);
  return closeUnresponsivePages(open, connectTimeout, (urls) => told.push(urls));
}

/** Watches a connect that is slow enough for the check. */
async function watchSlowConnect() {
  const pages = watch();
  await vi.advanceTimersByTimeAsync(4000);
  return pages;
}

function expectNothingClosed(pages: ReturnType<typeof watch>): void {
  expect(sent('Target.closeTarget')).toEqual([]);
  expect(told).toEqual([]);
  expect(pages.wereClosed()).toBe(false);
}

const commands = () => browser.received.map((text) => JSON.parse(text) as Record<string, unknown>);
const sent = (method: string) => commands().filter((command) => command['method'] === method);

it.each([
  [3000, 1000],
  [30_000, 4000],
])('starts when a connect with a timeout of %i ms has taken %i ms', async (connectTimeout, slow) => {
  const pages = watch(connectTimeout);
  await vi.advanceTimersByTimeAsync(slow - 1);
  expect(browser.dialled).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  await until(() => browser.dialled === 1);
  pages.stop();
  await until(() => browser.open === 0);
});

it('closes the pages that do not respond, and reports their URLs', async () => {
  playPages(browser, { good: 'answers', stuck: 'unresponsive', other: 'unresponsive' });
  const pages = await watchSlowConnect();
  // The page that answers has no timer any more.
  await until(() => sent('Runtime.evaluate').length === 3 && vi.getTimerCount() === 2);
  await vi.advanceTimersByTimeAsync(1999);
  await settle();
  expect(sent('Target.closeTarget')).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  await until(() => told.length > 0);
  expect(told).toEqual([['https://stuck/', 'https://other/']]);
  expect(sent('Target.closeTarget').map(({ params }) => params)).toEqual([
    { targetId: 'stuck' },
    { targetId: 'other' },
  ]);
  expect(pages.wereClosed()).toBe(true);
  await until(() => browser.open === 0);
});

it('reports the pages that it has closed, if another one has closed itself meanwhile', async () => {
  playPages(browser, { gone: 'unresponsive', stuck: 'unresponsive' });
  const answer = browser.onText;
  browser.onText = (text, client) => {
    const { id, method, params } = JSON.parse(text);
    if (method !== 'Target.closeTarget' || params.targetId !== 'gone') return answer(text, client);
    return client.send(JSON.stringify({ id, error: { message: 'No target with given id found' } }));
  };
  await watchSlowConnect();
  await until(() => sent('Runtime.evaluate').length === 2);
  await vi.advanceTimersByTimeAsync(2000);
  await until(() => browser.open === 0);
  expect(told).toEqual([['https://stuck/']]);
});

it('checks each page over its own session, and no worker; it closes no responsive page', async () => {
  playPages(browser, { one: 'answers', two: 'answers' });
  const pages = await watchSlowConnect();
  await until(() => sent('Runtime.evaluate').length === 2);
  await until(() => browser.open === 0);
  expect(sent('Target.attachToTarget').map(({ params }) => params)).toEqual([
    { targetId: 'one', flatten: true },
    { targetId: 'two', flatten: true },
  ]);
  expect(sent('Runtime.evaluate')).toMatchObject([
    { sessionId: 'session of one', params: { expression: '0' } },
    { sessionId: 'session of two', params: { expression: '0' } },
  ]);
  const ids = commands().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expectNothingClosed(pages);
  // The client learns after the browser that its socket is closed.
  await until(() => vi.getTimerCount() === 0);
});

it('closes no page whose answer arrived while the event loop was blocked', async () => {
  const pages = Array.from({ length: 30 }, (_page, index) => [`page-${index}`, 'answers'] as const);
  playPages(browser, Object.fromEntries(pages));
  const answer = browser.onText;
  browser.onText = (text, client) => {
    answer(text, client);
    // The timers fire before the client reads the last answers.
    if (sent('Runtime.evaluate').length === pages.length) vi.advanceTimersByTime(10_000);
  };
  await watchSlowConnect();
  await until(() => sent('Runtime.evaluate').length === pages.length);
  await until(() => browser.open === 0);
  expect(sent('Target.closeTarget')).toEqual([]);
  expect(told).toEqual([]);
});

it('closes nothing after the connect has ended', async () => {
  playPages(browser, { stuck: 'unresponsive' });
  const pages = await watchSlowConnect();
  await until(() => sent('Runtime.evaluate').length === 1);
  pages.stop();
  await until(() => browser.open === 0);
  await vi.advanceTimersByTimeAsync(5000);
  await settle();
  expectNothingClosed(pages);
});

it('ends without an error when the browser refuses, disconnects or is unreachable', async () => {
  const refuse = (text: string) => JSON.stringify({ id: JSON.parse(text).id, error: {} });
  browser.onText = (text, client) => client.send(refuse(text));
  await watchSlowConnect();
  await until(() => browser.received.length === 1);
  await until(() => browser.open === 0);
  browser.onText = (_text, client) => client.terminate();
  await watchSlowConnect();
  await until(() => browser.received.length === 2);
  await until(() => browser.open === 0);
  watch(30_000, UNREACHABLE.replace('http', 'ws'));
  await vi.advanceTimersByTimeAsync(4000);
  await settle();
  expect(told).toEqual([]);
});
