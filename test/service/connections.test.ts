import { execFile } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished, vi } from 'vitest';
import { PoolClosedError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, reply, session, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import * as played from '../support/played-browser.js';
import { rejection, until } from './support.js';

it('shares keep-alive connections among pools of one origin, and closes them with the last pool', async () => {
  await using service = await FakeService.start();
  const one = new BrowserPool('one', service.options);
  const two = new BrowserPool('two', { ...service.options, token: 'another-token' });
  for (let round = 0; round < 5; round++) await one.flush();
  await two.flush();
  await one.close();
  await two.flush();
  expect(service.connections).toStrictEqual({ made: 1, open: 1 });
  await two.close();
  await until(() => service.connections.open === 0);
});

it('opens new connections for a pool that is created after the last one was closed', async () => {
  await using service = await FakeService.start();
  const first = new BrowserPool('one', service.options);
  await first.flush();
  await first.close();
  await using second = new BrowserPool('one', service.options);
  await second.flush();
  expect(service.connections.made).toBe(2);
});

it('shares nothing between pools of different origins', async () => {
  await using one = await FakeService.start();
  await using two = await FakeService.start();
  const first = new BrowserPool('one', one.options);
  await using second = new BrowserPool('two', two.options);
  await first.flush();
  await second.flush();
  await first.close();
  await until(() => one.connections.open === 0);
  expect(two.connections.open).toBe(1);
  await second.flush();
});

it('does not delay requests behind a waiting request', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const held: ServerResponse[] = [];
  service.script('acquire', (response) => void held.push(response));
  const waits = Array.from({ length: 20 }, () => pool.acquire());
  await until(() => held.length === 20);
  await pool.flush();
  for (const response of held) reply(response, { status: 204 });
  expect(await Promise.all(waits)).toEqual(waits.map(() => null));
});

it('refuses every call after close', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  await pool.flush();
  await pool.close();
  const calls = [
    pool.acquire(),
    pool.release('session-1'),
    pool.flush(),
    pool.replays('session-1'),
    pool.describe(),
  ];
  for (const call of calls) {
    const error = await rejection(call);
    expect(error).toBeInstanceOf(PoolClosedError);
    expect(error).toMatchObject({ name: 'PoolClosedError', code: 'ERR_POOL_CLOSED' });
  }
  expect(service.requests).toHaveLength(1);
});

it('closes once, even if several calls close it', async () => {
  await using service = await FakeService.start();
  const other = new BrowserPool('other', service.options);
  const pool = new BrowserPool('pool', service.options);
  await other.flush();
  const before = { ...service.connections };
  await Promise.all([pool.close(), pool.close(), pool[Symbol.asyncDispose]()]);
  await pool.close();
  expect(service.connections).toStrictEqual(before);
  await other.flush();
  await other.close();
});

it('closes a pool that was never used', async () => {
  const pool = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  await pool.close();
  expect(await rejection(pool.flush())).toBeInstanceOf(PoolClosedError);
});

it('waits in close() for the response to an open acquire request', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(), delay: 200 });
  const order: string[] = [];
  const acquire = pool.acquire().then(() => order.push('granted'));
  await until(() => service.of('acquire').length === 1);
  await pool.close().then(() => order.push('closed'));
  await acquire;
  expect(order).toStrictEqual(['granted', 'closed']);
});

it('lets a call that is under way finish when its pool is closed', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('flush', { status: 204, delay: 100 });
  const flush = pool.flush();
  await until(() => service.requests.length === 1);
  await pool.close();
  await expect(flush).resolves.toBeUndefined();
});

it('does not keep the process alive with an idle pool', async () => {
  await using service = await FakeService.start();
  const code = `
    import { BrowserPool } from './src/service/browser-pool.ts';
    new BrowserPool('unused');
    const pool = new BrowserPool('pool');
    await pool.acquire();
    await pool.flush();
    console.log('done');
  `;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', code],
    {
      cwd: fileURLToPath(new URL('../../', import.meta.url)),
      env: {
        ...process.env,
        BROWSER_POOL_BASE_URL: service.baseUrl,
        BROWSER_POOL_ACCESS_TOKEN: TOKEN,
      },
      // Longer than the start of a process, and far shorter than the server's keep-alive timeout.
      timeout: 200_000,
    },
  );
  expect(stdout.trim()).toBe('done');
  expect(service.requests.map(({ path }) => path.split('/').at(-1))).toStrictEqual(['acquire', 'flush']);
});

it('works with a server that closes its idle connections', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
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

it('reads a response that arrived while the event loop was blocked for longer than the timeout', async () => {
  const state = new Int32Array(new SharedArrayBuffer(4));
  const [RECEIVED, MAY_ANSWER, ANSWERED] = [1, 2, 3] as const;
  const server = new Worker(ANSWERING_SERVER, { eval: true, workerData: state });
  const [port] = (await once(server, 'message')) as [number];
  await using pool = new BrowserPool('pool', { baseUrl: `http://127.0.0.1:${port}`, token: 'a-token' });
  // The first request starts the timer that all connections share: it must be a real one.
  await pool.flush();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const release = pool.release('session-1', { reuse: true, timeout: 1500 });
  await played.until(() => Atomics.load(state, 0) === RECEIVED);
  // The event loop is blocked until the timer has fired: the response is in the socket, and not read.
  Atomics.store(state, 0, MAY_ANSWER);
  Atomics.notify(state, 0);
  Atomics.wait(state, 0, MAY_ANSWER);
  expect(Atomics.load(state, 0)).toBe(ANSWERED);
  vi.advanceTimersByTime(2000);
  await expect(release).resolves.toBeUndefined();
  await server.terminate();
});

/** Notes a release, and answers it when it may. */
const ANSWERING_SERVER = `
  const { createServer } = require('node:http');
  const { parentPort, workerData: state } = require('node:worker_threads');
  const server = createServer((request, response) => {
    response.statusCode = 204;
    if (request.url.endsWith('/flush')) return response.end();
    Atomics.store(state, 0, 1);
    Atomics.wait(state, 0, 1);
    response.end(() => {
      Atomics.store(state, 0, 3);
      Atomics.notify(state, 0);
    });
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;
