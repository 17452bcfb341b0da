import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BrowserPool, runOf, withPooledBrowser, type RunEvent, type RunOptions } from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { reply, TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedLease } from '../support/played-lease.js';
import { hasOpenSsl, selfSigned } from '../support/self-signed.js';
import { LONG, watchTimeouts } from './support.js';

const RETRY = { minTimeout: 10, maxTimeout: 50 };

/** Returns the error of a call at this address, and its events. */
async function fail(baseUrl: string, options: RunOptions = {}) {
  await using pool = new BrowserPool('pool', { baseUrl, token: TOKEN });
  const events: RunEvent[] = [];
  const onEvent = (event: RunEvent) => {
    events.push(event);
    options.onEvent?.(event);
  };
  const all = { retry: RETRY, connector: plainConnector, ...options, onEvent };
  const error = await rejection(withPooledBrowser(pool, () => expect.fail('called'), all));
  return { error, types: events.map(({ type }) => type).filter((type) => type !== 'ended') };
}

/** Returns the address of a server that calls `answer` with each connection. */
async function serve(answer: (socket: Socket) => unknown): Promise<string> {
  const server = createServer((socket) => {
    onTestFinished(() => void socket.destroy());
    answer(socket.on('error', () => {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let lastPort = 900;

/**
 * Returns another address at which nothing listens. The system never assigns such low ports itself: a port that was just
 * closed could be assigned to another process, or a connection to it could reach itself.
 */
function closedPort(): string {
  return `http://127.0.0.1:${++lastPort}`;
}

describe('a service that cannot be reached over TLS', () => {
  it.each([
    ['HTTP', 'HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n'],
    ['another protocol', 'SSH-2.0-not-tls\r\n'],
  ])('fails immediately, with the correct address, if it speaks %s', async (_what, bytes) => {
    const host = await serve((socket) => socket.end(bytes));
    const { error, types } = await fail(`https://${host}/v1`);
    expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', isPermanent: true });
    expect(error.message).toBe(
      `The service at https://${host} does not speak TLS. Did you mean http://${host}?`,
    );
    expect(types).toStrictEqual(['acquiring']);
  });

  it.runIf(hasOpenSsl)('fails immediately, with the reason, if its certificate is not trusted', async () => {
    const server = createTlsServer(selfSigned());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const { error, types } = await fail(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', isPermanent: true });
    expect(error.message).toMatch(/self-signed certificate\. Check baseUrl.*NODE_EXTRA_CA_CERTS/);
    expect(types).toStrictEqual(['acquiring']);
  });

  it('gets another request if it closes the connection during the handshake, and no outcome is unknown', async () => {
    const host = await serve((socket) => socket.destroy());
    const { error, types } = await fail(`https://${host}`, { retry: { ...RETRY, retries: 2 } });
    expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', isPermanent: false });
    expect(types).toStrictEqual(['acquiring', 'waiting', 'acquiring', 'waiting', 'acquiring']);
  });
});

describe('unreachableTimeout', () => {
  it('ends a call whose connections are all refused, with the last failure first', async () => {
    const baseUrl = closedPort();
    const { error, types } = await fail(baseUrl, { unreachableTimeout: 300 });
    const facts = {
      name: 'PoolConnectionError',
      code: 'ERR_POOL_UNREACHABLE',
      isPermanent: true,
      pool: 'pool',
    };
    expect(error).toMatchObject({ ...facts, attempts: expect.any(Number), elapsed: expect.any(Number) });
    expect(error.message).toMatch(
      new RegExp(
        `^The service at ${baseUrl} could not be reached: connect ECONNREFUSED.*300 ms.*unreachableTimeout`,
      ),
    );
    expect(new Set(types)).toEqual(new Set(['acquiring', 'waiting']));
    // Now also a new pool gives up at once: the time began with the first failure in this process.
    expect((await fail(baseUrl, { unreachableTimeout: 300 })).types).toStrictEqual(['acquiring']);
  });

  it('ends a call during the pause between two requests', async () => {
    const retry = { minTimeout: 3_600_000, maxTimeout: 3_600_000 };
    const { error, types } = await fail(closedPort(), { retry, unreachableTimeout: 300 });
    expect(error).toMatchObject({ name: 'PoolConnectionError', isPermanent: true });
    expect(types).toStrictEqual(['acquiring', 'waiting']);
  });

  it('also ends the calls that wait in the queue', async () => {
    const baseUrl = closedPort();
    const calls = Array.from({ length: 40 }, () => fail(baseUrl, { unreachableTimeout: 500 }));
    for (const { error } of await Promise.all(calls)) expect(error).toMatchObject({ isPermanent: true });
  });

  it('does not end a call whose service was reached before: it may restart', async () => {
    await using played = await PlayedLease.start();
    const grant = { status: 200, json: played.session() };
    // The system never assigns a port of this range, so that no other process can take it in the meantime.
    const port = 20_000 + (process.pid % 10_000);
    const start = async () => {
      const server = createHttpServer((_request, response) => reply(response, grant));
      const stop = async () => {
        server.closeAllConnections();
        if (server.listening) await once(server.close(), 'close');
      };
      onTestFinished(stop);
      await once(server.listen(port, '127.0.0.1'), 'listening');
      return stop;
    };
    const stop = await start();
    await using pool = new BrowserPool('pool', { baseUrl: `http://127.0.0.1:${port}`, token: TOKEN });
    const options: RunOptions = { release: 'leave', replays: 'off' };
    await played.run(undefined, options, pool);
    await stop();
    const waiting = played.run(undefined, { ...options, unreachableTimeout: 1 }, pool);
    await expect.poll(() => played.told('waiting').length).toBeGreaterThan(2);
    await start();
    expect((await waiting).value).toBe('value');
  });

  it('does not end a call whose first connection waits for a browser', async () => {
    await using played = await PlayedLease.start();
    played.service.script('acquire', { status: 200, json: played.session(), delay: 300 });
    expect((await played.run(undefined, { unreachableTimeout: 50 })).value).toBe('value');
  });

  it('leads the message of AcquireTimeoutError with the last failure if acquireTimeout ends first', async () => {
    const endTimeout = watchTimeouts();
    const { error } = await fail(closedPort(), {
      acquireTimeout: LONG,
      onEvent: ({ type }) => type === 'waiting' && endTimeout(),
    });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { code: 'ERR_POOL_UNREACHABLE' } });
    expect(error.message).toMatch(/^The service at .* could not be reached: connect ECONNREFUSED/);
    expect(error.message).not.toContain('enlarge the pool');
  });
});

it('sends nothing after an abort while its connection is opened, and no outcome is unknown', async () => {
  const opening: Socket[] = [];
  const proxy = await serve((socket) => socket.once('data', () => opening.push(socket)));
  const service = { baseUrl: 'http://service.test', insecure: true, token: TOKEN, proxy: `http://${proxy}` };
  const pool = new BrowserPool('pool', service);
  const reason = new Error('enough');
  const controller = new AbortController();
  const { signal } = controller;
  const calls = [
    withPooledBrowser(pool, () => expect.fail('called'), { connector: plainConnector, signal }),
    pool.acquire({}, { signal }),
  ].map((call) => rejection(call));
  await expect.poll(() => opening).toHaveLength(2);
  controller.abort(reason);
  expect(await Promise.all(calls)).toEqual([reason, reason]);
  expect(runOf(await calls[0])).toMatchObject({ unknownAcquires: 0 });
  let received = '';
  const closed = opening.map(async (socket) => {
    socket.on('data', (data) => (received += String(data))).write('HTTP/1.1 200 OK\r\n\r\n');
    await once(socket, 'close');
  });
  await pool.close();
  await Promise.all(closed);
  expect(received).toBe('');
});
