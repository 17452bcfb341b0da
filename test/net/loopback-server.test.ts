import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { serveProxy } from '../../src/index.js';
import { openIdle } from '../support/idle-connections.js';
import { PlayedLease } from '../support/played-lease.js';

it('500 idle connections do not keep out clients of the proxy with the secret', async () => {
  await using played = await PlayedLease.start();
  await using proxy = await serveProxy(played.pool, { onEvent: () => {} });
  const url = new URL(`${proxy.url}/json/version`);
  // With the secret, and kept open.
  const client = connect(Number(url.port), '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const request = `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`;
  client.write(request);
  await once(client, 'data');
  const open = await openIdle(Number(url.port), 500);
  await expect.poll(open).toBeLessThanOrEqual(200);
  expect(open()).toBeGreaterThan(150);
  expect((await fetch(url)).status).toBe(200);
  client.write(request);
  await once(client, 'data');
});

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
