import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Run, RunEvent, RunOptions } from '../../src/index.js';
import { until } from '../support/played-browser.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, PLAIN } from '../support/drivers.js';
import { reply, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool({ pools: [{ name: 'test', size: 3 }] });

/** The most acquire requests that are sent to one pool at the same time. */
const ASKING = 32;

it('serves 9 calls of all three drivers at once from a pool of 3 browsers', async () => {
  await using bench = await FaultBench.start(used.local);
  // The service holds a request until a browser is free: the last call waits for two others.
  const limits = { acquireTimeout: 240_000, pollTimeout: 240_000 };
  const calls = Array.from({ length: 9 }, (_, index) =>
    bench.run(DRIVERS[index % 3]!, ({ page }) => page.evaluate(String(index)), limits),
  );
  const outcomes = await Promise.all(calls);
  expect(outcomes.flatMap(({ error }) => error ?? [])).toEqual([]);
  expect(outcomes.map(({ value }) => value)).toEqual(outcomes.map((_, index) => index));
  expect(outcomes.every(({ run }) => run?.released === 'reused')).toBe(true);
  expect(bench.released.size).toBe(9);
  await bench.pool.close();
  await expect.poll(() => used.local.stats().leased).toBe(0);
}, 240_000);

it('serves 200 calls at once on a pool of 10 in the order of the calls', async () => {
  await using bench = await FaultBench.start();
  const browsers = new Browsers(bench, 10);
  const runs = await browsers.serve(200, { pollTimeout: 480_000 });
  expect(runs.every(({ value, released }) => value === 'value' && released === 'reused')).toBe(true);
  expect(browsers.mostLeased).toBeGreaterThan(1);
  expect(browsers.mostLeased).toBeLessThanOrEqual(10);
  // Each call sends one request and is served in its order. Only calls whose requests are open at the same time may
  // change places.
  expect(runs.every(({ acquireAttempts }) => acquireAttempts === 1)).toBe(true);
  expect(Math.max(...browsers.early)).toBeLessThan(ASKING);
  expect(Math.min(...browsers.early)).toBeGreaterThan(-2 * ASKING);
  expect(bench.released.size).toBe(200);
}, 480_000);

it('serves all of 150 calls whose requests end before a browser is free, with few requests', async () => {
  await using bench = await FaultBench.start();
  const browsers = new Browsers(bench, 10);
  const began = performance.now();
  const runs = await browsers.serve(150, { pollTimeout: 500 });
  const seconds = (performance.now() - began) / 1000;
  expect(runs.every(({ value, released }) => value === 'value' && released === 'reused')).toBe(true);
  expect(bench.released.size).toBe(150);
  // Not in strict order, because a repeated request is the last in the service's queue; but no call waits for long.
  expect(Math.max(...browsers.early)).toBeLessThan(ASKING);
  expect(Math.min(...browsers.early)).toBeGreaterThan(-100);
  // One request per call, and two per second for each waiting request.
  expect(bench.service.of('acquire').length).toBeLessThan(150 + 4 * ASKING * seconds);
}, 480_000);

it('sends at most 1.1 requests per call during a total outage, and finishes all calls afterwards', async () => {
  await using bench = await FaultBench.start();
  const browsers = new Browsers(bench, 50);
  let isDown = true;
  bench.service.script('acquire', (response, request) =>
    isDown ? reply(response, { status: 503 }) : browsers.acquire(response, request),
  );
  const events: RunEvent[] = [];
  const running = browsers.serve(200, {
    acquireTimeout: 240_000,
    releaseTimeout: 60_000,
    onEvent: (event) => events.push(event),
  });
  await until(() => bench.service.of('acquire').length > 0);
  await sleep(4000);
  const during = bench.service.of('acquire').length;
  expect(during).toBeGreaterThan(0);
  expect(during / 200).toBeLessThanOrEqual(1.1);
  isDown = false;
  const runs = await running;
  expect(runs.every(({ value, released }) => value === 'value' && released === 'reused')).toBe(true);
  expect(bench.released.size).toBe(200);
  expect(events.filter(({ type }) => type === 'outcome-unknown')).toEqual([]);
  // The calls no longer send requests one at a time, each after a pause: that would also take longer than acquireTimeout.
  expect(browsers.mostLeased).toBeGreaterThan(1);
}, 480_000);

/** A number of browsers that are leased in the order of the requests. */
class Browsers {
  mostLeased = 0;
  /** Numbers of the calls, in the order in which they were served. */
  readonly grants: number[] = [];
  readonly #bench: FaultBench;
  readonly #size: number;
  readonly #waiting: ((isLeased: boolean) => void)[] = [];
  #leased = 0;

  constructor(bench: FaultBench, size: number) {
    this.#bench = bench;
    this.#size = size;
    bench.service.script('acquire', this.acquire);
    bench.service.script('release', (response, { body }) => {
      bench.released.add(String(body?.['session_id']));
      reply(response, { status: 204 });
      this.#leased--;
      this.#waiting[0]?.(true);
    });
  }

  /** The difference between the place of each call and the place of its lease. Late leases are negative. */
  get early(): number[] {
    return this.grants.map((call, place) => call - place);
  }

  /** Starts calls at the same time, each of which uses its browser for a moment. */
  async serve(calls: number, options: RunOptions): Promise<Run<unknown>[]> {
    const running = Array.from({ length: calls }, (_, call) =>
      PLAIN.run(this.#bench.pool, () => sleep(10, 'value'), {
        acquireTimeout: 480_000,
        connectTimeout: 120_000,
        replays: 'off',
        tags: { call: String(call) },
        ...options,
      }),
    );
    return Promise.all(running);
  }

  readonly acquire = (async (response, { body }) => {
    const { tags, acquire_timeout_seconds: wait } = body as {
      tags?: { call: string };
      acquire_timeout_seconds: number;
    };
    if (this.#leased >= this.#size && !(await this.#waitForPlace(wait * 1000)))
      return reply(response, { status: 204 });
    this.grants.push(Number(tags?.call));
    this.mostLeased = Math.max(this.mostLeased, ++this.#leased);
    reply(response, { status: 200, json: this.#bench.fakeSession() });
  }) satisfies Answer;

  /** Waits for a free browser. Resolves to false after `wait` ms. */
  async #waitForPlace(wait: number): Promise<boolean> {
    return new Promise((resolve) => {
      const take = (isLeased: boolean) => {
        clearTimeout(timer);
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        resolve(isLeased);
      };
      const timer = setTimeout(take, wait, false);
      this.#waiting.push(take);
    });
  }
}
