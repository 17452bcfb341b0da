import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { serveProxy } from '../../src/index.js';
import { openSharedEndpoint } from '../../src/connect/loopback-endpoint.js';
import { PlayedLease } from '../support/played-lease.js';

/** Opens idle connections, and returns how many of them the server has left open. */
async function openIdle(port: number, count: number): Promise<() => number> {
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  for (let opened = 0; opened < count; opened++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
  }
  return () => sockets.filter(({ closed, readyState }) => !closed && readyState === 'open').length;
}

it.each(['proxy', 'endpoint'])(
  '2,000 idle connections leave room for clients with the secret: %s',
  async (kind) => {
    await using played = await PlayedLease.start();
    await using proxy = await serveProxy(played.pool, { onEvent: () => {} });
    await using endpoint = await openSharedEndpoint(() => Promise.reject(new Error('no browser')));
    const url = new URL(
      (kind === 'proxy' ? `${proxy.url}/json/version` : endpoint.url).replace('ws:', 'http:'),
    );
    // With the secret, and kept open.
    const client = connect(Number(url.port), '127.0.0.1');
    onTestFinished(() => void client.destroy());
    if (kind === 'proxy') {
      client.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
      await once(client, 'data');
    }
    const open = await openIdle(Number(url.port), 2000);
    await expect.poll(open).toBeLessThanOrEqual(200);
    expect(open()).toBeGreaterThan(150);
    const response = await fetch(url);
    expect(response.status).toBe(kind === 'proxy' ? 200 : 426);
    if (kind === 'endpoint') return;
    client.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
    await once(client, 'data');
  },
);

it('a path of the proxy with dots names no browser', async () => {
  await using played = await PlayedLease.start();
  await using proxy = await serveProxy(played.pool);
  const { host, port, pathname } = new URL(proxy.url);
  for (const name of ['.', '..']) {
    // As it is: fetch would shorten the path.
    const client = connect(Number(port), '127.0.0.1');
    client.write(
      `GET ${pathname}/${name}/json/version HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 404 /);
    client.destroy();
  }
});
