import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { mapPooledBrowsers, type RunEvent } from '../../src/index.js';
import { collect, MapBench, range } from './support.js';

/** A job of 4 workers with a lease for each task, in a pool with few browsers and one with many. */
async function run(first: MapBench, second: MapBench, count: number, onEvent: (event: RunEvent) => void) {
  const outcomes = mapPooledBrowsers([first.pool, second.pool], range(count), () => sleep(100), {
    connector: first.connector,
    concurrency: 4,
    tasksPerLease: 1,
    failoverAfter: 60,
    replays: 'off',
    retry: { minTimeout: 5, maxTimeout: 20 },
    onEvent,
  });
  return collect(outcomes);
}

it('the workers of a job spread over the pools, and one of them at a time asks the full one again', async () => {
  await using first = await MapBench.start(1);
  await using second = await MapBench.start(10);
  first.mostTries = 0;
  const moves: string[] = [];
  const outcomes = await run(
    first,
    second,
    120,
    (event) => event.type === 'failover' && moves.push(event.from),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(Array(120).fill('fulfilled'));
  expect([first.leased, second.leased, first.mostLeased]).toEqual([0, 0, 1]);
  // In the order of the list, each lease of three workers would wait for the first pool.
  expect(second.granted.length).toBeGreaterThan(40);
  expect(first.granted.length).toBeGreaterThan(10);
  expect(moves.length).toBeLessThan(second.granted.length * 0.7);
});

it('work moves back to the first pool when it leases again', async () => {
  await using first = await MapBench.start(10);
  await using second = await MapBench.start(10);
  first.size = 0;
  await run(first, second, 150, ({ type }) => {
    if (type === 'acquired' && second.granted.length >= 20) first.size = 10;
  });
  expect(second.granted.length).toBeLessThan(75);
  expect(first.granted.length).toBeGreaterThan(75);
});
