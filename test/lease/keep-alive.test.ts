import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BrowserPool, serveProxy } from '../../src/index.js';
import { kernel } from '../../src/services.js';
import { PlayedLease } from '../support/played-lease.js';

const KEEP_ALIVE = 50;
/** The simulated browser closes a connection that carried no command for so many ms. */
const LIMIT = 250;

let played: PlayedLease;

beforeEach(async () => {
  played = await PlayedLease.start();
  const { browser } = played;
  const answer = browser.onText;
  const timers = new Map<unknown, NodeJS.Timeout>();
  const watch = (client: Parameters<typeof answer>[1]) => {
    clearTimeout(timers.get(client));
    timers.set(
      client,
      setTimeout(() => client.close(1000), LIMIT),
    );
  };
  browser.onConnect = watch;
  browser.onText = (text, client) => {
    watch(client);
    const { id, method } = JSON.parse(text) as { id: number; method: string };
    if (COMMANDS.includes(method)) client.send(JSON.stringify({ type: 'success', id, result: {} }));
    else answer(text, client);
  };
  return () => timers.forEach((timer) => clearTimeout(timer));
});

afterEach(() => played[Symbol.asyncDispose]());

const COMMANDS = ['Browser.getVersion', 'session.status'];
const sent = () =>
  played.browser.received
    .map((text) => (JSON.parse(text) as { method: string }).method)
    .filter((method) => COMMANDS.includes(method));
const poolOf = (keepAlive?: number) => {
  const service = keepAlive === undefined ? kernel : { ...kernel, keepAlive };
  return new BrowserPool('test', { ...played.service.options, service });
};

it.each([
  ['cdp', 'Browser.getVersion'],
  ['bidi', 'session.status'],
] as const)('an idle lease over %s outlives the limit of its service', async (protocol, command) => {
  await using pool = poolOf(KEEP_ALIVE);
  const lease = await played.leaseIn(pool, { protocol, replays: 'off' });
  const { socket } = played.requests[0]!;
  const got: string[] = [];
  socket.onMessage = (data) => void got.push(String(data));
  await sleep(2 * LIMIT);
  expect(lease.signal.aborted).toBe(false);
  expect(new Set(sent())).toEqual(new Set([command]));
  // The library receives no answer to a command that it did not send.
  expect(got).toEqual([]);
  await lease.release();
  const before = sent().length;
  await sleep(3 * KEEP_ALIVE);
  expect(sent()).toHaveLength(before);
});

it('a lease that sends commands by itself needs no others; without keepAlive, the browser is lost', async () => {
  await using pool = poolOf(LIMIT);
  const lease = await played.leaseIn(pool, { replays: 'off' });
  const { socket } = played.requests[0]!;
  for (let count = 1; count <= 20; count++) {
    socket.send(JSON.stringify({ id: count, method: 'Page.enable' }));
    await sleep(20);
  }
  expect(sent()).toEqual([]);
  await lease.release();
  await using other = poolOf();
  const lost = await played.leaseIn(other, { replays: 'off' });
  await expect.poll(() => lost.signal.aborted).toBe(true);
  expect(lost.signal.reason).toMatchObject({ name: 'BrowserLostError', reason: 'closed-by-service' });
  await lost.release();
});

it.each([false, true])('does not count for the idleTimeout of the proxy, share: %o', async (share) => {
  await using pool = poolOf(KEEP_ALIVE);
  const events: string[] = [];
  const proxy = await serveProxy(pool, {
    share,
    idleTimeout: 2 * LIMIT,
    onClient: ({ type }) => events.push(type),
  });
  const client = new WebSocket(proxy.url.replace('http', 'ws'));
  const got: string[] = [];
  client.on('message', (data) => got.push(String(data)));
  await expect.poll(() => events).toContain('released');
  expect(sent().length).toBeGreaterThan(3);
  expect(got).toEqual([]);
  expect(played.told('browser-lost')).toEqual([]);
  client.terminate();
  await proxy.close();
});
