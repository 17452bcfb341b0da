import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { withPooledBrowser, type RunEvent } from '../../src/index.js';
import type { Connector } from '../../src/connect/connector.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease, type Driver } from '../support/drivers.js';
import { reply, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool({ pools: [{ name: 'test', size: 3 }] });

/** A connector to a websocket with no browser behind it: what is loaded here is the way to a lease and back. */
const plain: Connector<AnyLease> = {
  library: 'plain',
  refusal: () => undefined,
  load: async () => {},
  connect: async ({ socket }) => ({
    handles: {} as AnyLease,
    isConnected: () => true,
    sweep: async () => {},
    disconnect: async () => socket.close('closed-by-us'),
  }),
};

const PLAIN: Driver = {
  name: 'plain',
  run: (pool, fn, options) => withPooledBrowser(pool, fn, { ...options, connector: plain }),
  lease: () => Promise.reject(new Error('not used')),
  openPage: () => Promise.reject(new Error('not used')),
};

it('serves 15 calls of all three drivers at once from a pool of 3 browsers', async () => {
  await using bench = await FaultBench.start(used.local);
  const calls = Array.from({ length: 15 }, (_, index) =>
    bench.run(DRIVERS[index % 3]!, ({ page }) => page.evaluate(String(index)), { acquireTimeout: 60_000 }),
  );
  const outcomes = await Promise.all(calls);
  expect(outcomes.map(({ value }) => value)).toEqual(outcomes.map((_, index) => index));
  expect(outcomes.every(({ run }) => run?.released === 'reused')).toBe(true);
  expect(bench.released.size).toBe(15);
  await bench.pool.close();
  await expect.poll(() => used.local.stats().leased).toBe(0);
}, 60_000);

it('serves 200 calls at once on a pool of 10, first come, first served', async () => {
  await using bench = await FaultBench.start();
  await using browsers = await Browsers.start(bench, 10);
  const running = Array.from({ length: 200 }, () =>
    PLAIN.run(bench.pool, () => 'value', { acquireTimeout: 60_000, replays: 'off' }),
  );
  const runs = await Promise.all(running);
  expect(runs.every(({ value, released }) => value === 'value' && released === 'reused')).toBe(true);
  expect(browsers.mostLeased).toBeGreaterThan(1);
  expect(browsers.mostLeased).toBeLessThanOrEqual(10);
  // None is passed over: each asks once and is served in its turn.
  expect(runs.every(({ attempts }) => attempts === 1)).toBe(true);
  expect(bench.service.of('acquire')).toHaveLength(200);
  expect(bench.released.size).toBe(200);
}, 60_000);

it('sends hardly a request more than one a call through a total outage, and then all calls finish', async () => {
  await using bench = await FaultBench.start();
  await using browsers = await Browsers.start(bench, 50);
  let isDown = true;
  bench.service.script('acquire', (response) => {
    if (isDown) reply(response, { status: 503 });
    else return browsers.acquire(response);
    return undefined;
  });
  const events: RunEvent[] = [];
  const began = performance.now();
  const running = Array.from({ length: 300 }, () =>
    PLAIN.run(bench.pool, () => 'value', {
      acquireTimeout: 60_000,
      replays: 'off',
      onEvent: (event) => events.push(event),
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 4000));
  const during = bench.service.of('acquire').length;
  expect(during).toBeGreaterThanOrEqual(300);
  expect(during / 300).toBeLessThanOrEqual(1.1);
  isDown = false;
  const runs = await Promise.all(running);
  expect(runs.every(({ value, released }) => value === 'value' && released === 'reused')).toBe(true);
  expect(bench.released.size).toBe(300);
  expect(events.filter(({ type }) => type === 'outcome-unknown')).toEqual([]);
  expect(performance.now() - began).toBeLessThan(40_000);
}, 60_000);

/** A number of browsers that are granted in the order of the requests. */
class Browsers implements AsyncDisposable {
  mostLeased = 0;
  readonly #bench: FaultBench;
  readonly #sockets: WebSocketServer;
  readonly #size: number;
  readonly #waiting: (() => void)[] = [];
  #leased = 0;

  static async start(bench: FaultBench, size: number): Promise<Browsers> {
    const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(sockets, 'listening');
    const browsers = new Browsers(bench, sockets, size);
    bench.service.script('acquire', browsers.acquire);
    bench.service.script('release', (response, { body }) => {
      bench.released.add(String(body?.['session_id']));
      reply(response, { status: 204 });
      browsers.#leased--;
      browsers.#waiting.shift()?.();
    });
    return browsers;
  }

  private constructor(bench: FaultBench, sockets: WebSocketServer, size: number) {
    this.#bench = bench;
    this.#sockets = sockets;
    this.#size = size;
  }

  readonly acquire = (async (response) => {
    if (this.#leased >= this.#size) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.mostLeased = Math.max(this.mostLeased, ++this.#leased);
    const url = `ws://127.0.0.1:${(this.#sockets.address() as AddressInfo).port}`;
    const json = this.#bench.fakeSession({ cdp_ws_url: url, webdriver_ws_url: url });
    reply(response, { status: 200, json });
  }) satisfies Answer;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bench.pool.close();
    for (const client of this.#sockets.clients) client.terminate();
    await new Promise((resolve) => this.#sockets.close(resolve));
  }
}
