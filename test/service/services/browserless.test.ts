import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { BrowserPool, leaseBrowser, withPooledBrowser } from '../../../src/index.js';
import { browserless } from '../../../src/services.js';
import { TOKEN } from '../../support/fake-service.js';
import { plainConnector } from '../../support/plain-connector.js';
import { expectNoSecret, rejection } from '../support.js';

/** A server that starts a browser for each connection, and refuses those beyond its one slot. */
async function startServer() {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const urls: URL[] = [];
  let most = 0;
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url!, 'http://localhost');
    const refuse = (status: string) => void socket.end(`HTTP/1.1 ${status}\r\n\r\n`);
    if (url.searchParams.get('token') !== TOKEN) return refuse('401 Unauthorized');
    if (sockets.clients.size > 0) return refuse('429 Too Many Requests');
    urls.push(url);
    return sockets.handleUpgrade(request, socket, head, (client) => {
      // ws counts only the clients that it accepted itself.
      sockets.clients.add(client);
      client.on('close', () => sockets.clients.delete(client));
      most = Math.max(most, sockets.clients.size);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    urls,
    most: () => most,
    poolOf: (token = TOKEN) => new BrowserPool('mine', { service: browserless({ baseUrl }), token }),
    [Symbol.asyncDispose]: async () => {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

const options = { connector: plainConnector, retry: { minTimeout: 5, maxTimeout: 50 } };

it('waits while the service refuses a connection, and never holds two browsers on one slot', async () => {
  await using server = await startServer();
  await using pool = server.poolOf(TOKEN);
  const runs = await Promise.all(
    [1, 2, 3, 4].map(() => withPooledBrowser(pool, ({ session }) => session.id, options)),
  );
  expect(runs.map(({ released }) => released)).toEqual(Array(4).fill('destroyed'));
  expect(server.most()).toBe(1);
  expect(new Set(server.urls.map(({ searchParams }) => searchParams.get('trackingId')))).toEqual(
    new Set(runs.map(({ value }) => value)),
  );
  for (const run of runs) expectNoSecret(run);
});

it('fails with AcquireTimeoutError when the wait for a connection is over, and says why', async () => {
  await using server = await startServer();
  await using pool = server.poolOf();
  const held = await leaseBrowser(pool, options);
  const error = await rejection(withPooledBrowser(pool, () => {}, { ...options, acquireTimeout: 300 }));
  expect(error).toMatchObject({ name: 'AcquireTimeoutError', cause: { name: 'ConnectError', status: 429 } });
  expectNoSecret(error);
  await held.release();
});

it('fails after connectAttempts with a wrong token, and a lost browser is not reconnected', async () => {
  await using server = await startServer();
  await using wrong = server.poolOf('canary-wrong-token');
  const error = await rejection(withPooledBrowser(wrong, () => {}, options));
  expect(error).toMatchObject({ name: 'ConnectError', status: 401 });
  expectNoSecret(error);
  await using pool = server.poolOf();
  const held = await leaseBrowser(pool, { ...options, reconnect: 'eager' });
  expect(await rejection(held.detach())).toMatchObject({ name: 'InvalidOptionError' });
  expect((await held.release()).released).toBe('destroyed');
});

it('a token function that fails ends the call, and one that hangs ends with it', async () => {
  await using server = await startServer();
  const { baseUrl } = server.poolOf();
  const poolWith = (token: () => Promise<string>) =>
    new BrowserPool('mine', { service: browserless({ baseUrl }), token });
  const failing = poolWith(() => Promise.reject(new Error('no token today')));
  expect(await rejection(withPooledBrowser(failing, () => {}, options))).toMatchObject({
    message: 'no token today',
  });
  await failing.close();
  const hanging = poolWith(() => new Promise(() => {}));
  const late = rejection(withPooledBrowser(hanging, () => {}, { ...options, acquireTimeout: 100 }));
  expect(await late).toMatchObject({ name: 'AcquireTimeoutError' });
  await hanging.close();
});

it('passes launch options and a token function', async () => {
  await using server = await startServer();
  const { baseUrl } = server.poolOf();
  const service = browserless({
    baseUrl,
    path: '/chrome',
    launch: { args: ['--a'] },
    parameters: { timeout: 5 },
  });
  await using pool = new BrowserPool('mine', { service, token: async () => TOKEN });
  await withPooledBrowser(pool, () => {}, options);
  const [url] = server.urls;
  expect(url!.pathname).toBe('/chrome');
  expect(url!.searchParams.get('launch')).toBe('{"args":["--a"]}');
  expect(url!.searchParams.get('timeout')).toBe('5');
});
