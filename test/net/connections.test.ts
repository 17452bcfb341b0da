import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { BrowserPool, PoolClosedError } from '../../src/index.js';
import { FakeService, reply, session, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { until } from '../support/played-browser.js';
import { it, rejection } from '../pool/support.js';

it('shares connections among pools of one origin until the last one closes', async ({ service }) => {
  const one = new BrowserPool('one', service.options);
  const two = new BrowserPool('two', { ...service.options, token: 'another-token' });
  for (let round = 0; round < 5; round++) await one.flush();
  await two.flush();
  // A pool closes once, even if several calls close it.
  await Promise.all([one.close(), one.close(), one[Symbol.asyncDispose]()]);
  await two.flush();
  expect(service.connections).toStrictEqual({ made: 1, open: 1 });
  await two.close();
  await until(() => service.connections.open === 0);
  await using third = new BrowserPool('one', service.options);
  await third.flush();
  expect(service.connections.made).toBe(2);
});

it('shares nothing between pools of different origins', async ({ service, pool }) => {
  await using two = await FakeService.start();
  await using second = new BrowserPool('two', two.options);
  await pool.flush();
  await second.flush();
  await pool.close();
  await until(() => service.connections.open === 0);
  expect(two.connections.open).toBe(1);
  await second.flush();
});

it('does not delay requests behind a waiting request', async ({ service, pool }) => {
  const held: ServerResponse[] = [];
  service.script('acquire', (response) => void held.push(response));
  const waits = Array.from({ length: 20 }, () => pool.acquire());
  await until(() => held.length === 20);
  await pool.flush();
  for (const response of held) reply(response, { status: 204 });
  expect(await Promise.all(waits)).toEqual(waits.map(() => null));
});

it('refuses every call after close', async ({ service, pool }) => {
  await pool.flush();
  await using unused = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  await Promise.all([pool.close(), unused.close()]);
  const calls = [
    pool.acquire(),
    pool.release('session-1'),
    pool.flush(),
    pool.replays('session-1'),
    pool.describe(),
    unused.flush(),
  ];
  for (const call of calls) {
    const error = await rejection(call);
    expect(error).toBeInstanceOf(PoolClosedError);
    expect(error).toMatchObject({ name: 'PoolClosedError', code: 'ERR_POOL_CLOSED' });
  }
  expect(service.requests).toHaveLength(1);
});

it('waits in close() for open requests, and sends no new acquire request', async ({ service, pool }) => {
  service.script('acquire', { status: 200, json: session(), delay: 200 });
  service.script('flush', { status: 204, delay: 100 });
  const order: string[] = [];
  const acquire = rejection(pool.acquire()).then(({ name }) => order.push(name));
  const flush = pool.flush().then(() => order.push('flushed'));
  await until(() => service.requests.length === 2);
  const close = pool.close().then(() => order.push('closed'));
  expect(await rejection(pool.acquire())).toBeInstanceOf(PoolClosedError);
  await Promise.all([close, acquire, flush]);
  expect(order).toStrictEqual(['PoolClosedError', 'flushed', 'closed']);
  expect(service.of('acquire')).toHaveLength(1);
  expect(service.released).toStrictEqual(['session-1']);
});

it('works with a server that closes its idle connections', async ({ service, pool }) => {
  service.script('flush', (response) => {
    const { socket } = response;
    response.writeHead(204).end();
    setTimeout(() => socket?.destroy(), 10);
  });
  for (let round = 0; round < 3; round++) {
    await pool.flush();
    await until(() => service.connections.open === 0);
    // The client learns of it.
    await sleep(50);
  }
  expect(service.connections.made).toBe(3);
});
