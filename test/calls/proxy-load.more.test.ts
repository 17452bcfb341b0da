import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { serveProxy } from '../../src/index.js';
import { useLocalPool } from '../support/local.js';
import { Random } from '../support/random.js';

const SIZE = 4;
const used = useLocalPool({ pools: [{ name: 'test', size: SIZE }] });

it('serves 50 connections at once on a pool of 4 in order, and loses nothing of 25 that break at a random moment', async () => {
  const before = used.local.stats();
  const seed = Date.now() % 1_000_000;
  const random = new Random(seed);
  await using proxy = await serveProxy(used.pool, { acquireTimeout: 240_000 });
  const url = proxy.url.replace('http', 'ws');
  const served: number[] = [];
  const use = (index: number) =>
    new Promise<void>((resolve) => {
      const client = new WebSocket(url, { handshakeTimeout: 240_000 });
      client.on('error', () => {});
      client.once('close', () => resolve());
      client.once('open', () => client.send('{"id":1,"method":"Browser.getVersion"}'));
      client.once('message', () => {
        served.push(index);
        client.close();
      });
    });
  await Promise.all(Array.from({ length: 50 }, (_, index) => use(index)));
  expect(served.length).toBe(50);
  // Four browsers and 32 open requests at a time.
  expect(Math.max(...served.map((index, place) => Math.abs(index - place)))).toBeLessThan(32 + SIZE);
  const breaks = Array.from({ length: 25 }, async () => {
    const client = new WebSocket(url);
    client.on('error', () => {});
    client.once('open', () =>
      client.send('{"id":1,"method":"Target.createTarget","params":{"url":"about:blank"}}'),
    );
    await sleep(random.next() * 3000);
    client.terminate();
  });
  await Promise.all(breaks);
  await expect.poll(() => proxy.counts).toEqual({ connected: 0, waiting: 0, leased: 0 });
  await proxy.close();
  // Also waits for browsers that were leased after their client had left.
  await used.pool.close();
  const { granted, released: returned, leased } = used.local.stats();
  expect(leased, `seed ${seed}`).toBe(0);
  expect(granted - before.granted).toBeGreaterThanOrEqual(50);
  expect(returned - before.released).toBe(granted - before.granted);
}, 240_000);
