import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { collect, counted, gate, MapBench, range } from './support.js';

it('gives every input exactly one outcome, with its index, value, session and attempts', async () => {
  await using bench = await MapBench.start();
  const outcomes = await collect(bench.map(['a', 'b', 'c', 'd', 'e'], ({ input }) => input.toUpperCase()));
  const byIndex = outcomes.toSorted((a, b) => a.index - b.index);
  expect(byIndex).toMatchObject(
    ['a', 'b', 'c', 'd', 'e'].map((input, index) => ({
      status: 'fulfilled',
      index,
      input,
      value: input.toUpperCase(),
      attempts: 1,
      session: { session_id: expect.stringMatching(/^s\d$/) as string },
    })),
  );
  // Four are asked for; one that is granted when no task is left goes back behind the scenes.
  await expect.poll(() => bench.leased).toBe(0);
});

it.each([
  ['a set', new Set([0, 1, 2])],
  ['a map’s values', new Map(range(3).map((value) => [value, value])).values()],
  ['an async generator', counted(3).inputs],
])('takes %s', async (_name, inputs: Iterable<number> | AsyncIterable<number>) => {
  await using bench = await MapBench.start();
  const outcomes = await collect(bench.map(inputs, ({ input }) => input * 2, { ordered: true }));
  expect(outcomes).toMatchObject([{ value: 0 }, { value: 2 }, { value: 4 }]);
});

it('ends at once, without a lease, when there are no inputs', async () => {
  await using bench = await MapBench.start();
  expect(await collect(bench.map([], () => {}))).toEqual([]);
  expect(bench.service.requests).toEqual([]);
});

it('does nothing before the loop begins', async () => {
  await using bench = await MapBench.start();
  const source = counted(3);
  const outcomes = bench.map(source.inputs, () => {});
  await sleep(50);
  expect([source.pulled, bench.service.requests.length]).toEqual([0, 0]);
  await outcomes.return!();
  expect(await outcomes.next()).toEqual({ done: true, value: undefined });
  expect(bench.service.requests).toEqual([]);
});

it('runs as many tasks at once as concurrency and pagesPerLease say, each in a page of its own', async () => {
  await using bench = await MapBench.start();
  const running = new Set<number>();
  let most = 0;
  const task = async ({ page }: { page: { id: number } }) => {
    expect(running.has(page.id)).toBe(false);
    running.add(page.id);
    most = Math.max(most, running.size);
    await sleep(20);
    running.delete(page.id);
  };
  await collect(bench.map(range(40), task, { concurrency: 2, pagesPerLease: 3, isolation: 'none' }));
  expect(most).toBe(6);
  expect(bench.mostLeased).toBe(2);
  // One comes with each connection.
  expect(bench.pages).toHaveLength(2 + 6);
});

it('leases no more browsers than there are inputs waiting', async () => {
  await using bench = await MapBench.start();
  await collect(bench.map([1, 2], () => sleep(10), { concurrency: 10 }));
  expect(bench.granted.length).toBeLessThanOrEqual(2);
});

it('leases one browser for inputs that come one after the other', async () => {
  await using bench = await MapBench.start();
  let done = gate();
  async function* inputs() {
    for (const input of range(5)) {
      yield input;
      await done.promise;
      done = gate();
    }
  }
  let seen = 0;
  for await (const { index } of bench.map(inputs(), () => {}, { concurrency: 4 })) {
    expect(index).toBe(seen++);
    // The lane is free again before the next input comes.
    await sleep(20);
    done.open();
  }
  expect(bench.granted).toHaveLength(1);
});

it('reads no further ahead than the tasks at once, and waits while the loop does', async () => {
  await using bench = await MapBench.start();
  const source = counted(1000);
  let seen = 0;
  for await (const { status } of bench.map(source.inputs, () => {}, { concurrency: 2 })) {
    expect(status).toBe('fulfilled');
    seen++;
    await sleep(5);
    // Two at work or waiting for the loop, and as many again.
    expect(source.pulled - seen).toBeLessThanOrEqual(4);
    if (seen === 30) break;
  }
  expect(source.closed).toBe(1);
});

it('hands out outcomes as they come', async () => {
  await using bench = await MapBench.start();
  const slow = gate();
  const outcomes = bench.map([0, 1, 2], ({ input }) => (input === 0 ? slow.promise : undefined), {
    concurrency: 2,
  });
  const indexes: number[] = [];
  for await (const { index } of outcomes) {
    indexes.push(index);
    if (indexes.length === 2) slow.open();
  }
  expect(indexes).toEqual([1, 2, 0]);
});

it('hands out outcomes in the order of the inputs with ordered, and reads only so far ahead', async () => {
  await using bench = await MapBench.start();
  const slow = gate();
  const source = counted(100);
  const task = ({ input }: { input: number }) => (input === 0 ? slow.promise : undefined);
  const outcomes = collect(bench.map(source.inputs, task, { concurrency: 2, ordered: true }));
  await expect.poll(() => source.pulled).toBe(4);
  await sleep(100);
  expect(source.pulled).toBe(4);
  slow.open();
  expect((await outcomes).map(({ index }) => index)).toEqual(range(100));
});

it('lets several ask for the next outcome at once', async () => {
  await using bench = await MapBench.start();
  const outcomes = bench.map(range(3), ({ input }) => input, { ordered: true });
  const results = await Promise.all(range(5).map(() => outcomes.next()));
  expect(results.map(({ done, value }) => (done ? 'done' : value.index))).toEqual([0, 1, 2, 'done', 'done']);
});

it('names the leases one after the other', async () => {
  await using bench = await MapBench.start();
  await collect(bench.map(range(4), () => sleep(5), { name: 'crawl', tasksPerLease: 2, concurrency: 1 }));
  expect(bench.service.of('acquire').map(({ body }) => body?.['name'])).toEqual(['crawl-1', 'crawl-2']);
});
