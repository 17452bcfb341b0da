import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Isolation } from '../../src/index.js';
import { it } from './it.js';
import { collect, counted, gate, range, valuesOf, type FakePage } from './support.js';

it('yields one outcome for every input, with its index, value, session and attempts', async ({ bench }) => {
  const inputs = ['a', 'b', 'c', 'd', 'e'];
  const outcomes = await bench.run(inputs, ({ input }) => input.toUpperCase());
  expect(outcomes.toSorted((a, b) => a.index - b.index)).toMatchObject(
    inputs.map((input, index) => ({
      status: 'fulfilled',
      index,
      input,
      value: input.toUpperCase(),
      attempts: 1,
      session: { session_id: expect.stringMatching(/^s\d$/) as string },
    })),
  );
  // Four browsers are requested. One that is granted after the last task is released in the background.
  await expect.poll(() => bench.leased).toBe(0);
});

it.for<[string, Iterable<number> | AsyncIterable<number>]>([
  ['a set', new Set([0, 1, 2])],
  ['the values of a map', new Map(range(3).map((value) => [value, value])).values()],
  ['an async generator', counted(3).inputs],
])('accepts %s', async ([, inputs], { bench }) => {
  expect(await valuesOf(bench.map(inputs, ({ input }) => input * 2, { ordered: true }))).toEqual([0, 2, 4]);
});

it('ends immediately and leases nothing when there are no inputs', async ({ bench }) => {
  expect(await bench.run([], () => {})).toEqual([]);
  expect(bench.service.requests).toEqual([]);
});

it('pulls and leases nothing before the loop begins', async ({ bench }) => {
  const source = counted(3);
  const outcomes = bench.map(source.inputs, () => {});
  await sleep(50);
  expect([source.pulled, bench.service.requests.length]).toEqual([0, 0]);
  await outcomes.return!();
  expect(await outcomes.next()).toEqual({ done: true, value: undefined });
  expect(bench.service.requests).toEqual([]);
});

it('runs concurrency × pagesPerLease tasks at once, each in its own page', async ({ bench }) => {
  const running = new Set<number>();
  let most = 0;
  const task = async ({ page }: { page: { id: number } }) => {
    expect(running.has(page.id)).toBe(false);
    running.add(page.id);
    most = Math.max(most, running.size);
    await sleep(20);
    running.delete(page.id);
  };
  await bench.run(range(40), task, { concurrency: 2, pagesPerLease: 3, isolation: 'none' });
  expect([most, bench.mostLeased]).toEqual([6, 2]);
  // Each connection adds one page.
  expect(bench.pages).toHaveLength(2 + 6);
});

it('leases no more browsers than inputs wait', async ({ bench }) => {
  await bench.run([1, 2], () => sleep(10), { concurrency: 10 });
  expect(bench.granted.length).toBeLessThanOrEqual(2);
});

it('leases one browser for inputs that come one after another', async ({ bench }) => {
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

it('pulls no more inputs than tasks run at once, and waits while the loop is busy', async ({ bench }) => {
  const source = counted(1000);
  let seen = 0;
  for await (const { status } of bench.map(source.inputs, () => {}, { concurrency: 2 })) {
    expect(status).toBe('fulfilled');
    seen++;
    await sleep(5);
    // Two tasks run, and two outcomes wait for the loop.
    expect(source.pulled - seen).toBeLessThanOrEqual(4);
    if (seen === 30) break;
  }
  expect(source.closed).toBe(1);
});

it('yields outcomes in the order in which the tasks end', async ({ bench }) => {
  const slow = gate();
  const task = ({ input }: { input: number }) => (input === 0 ? slow.promise : undefined);
  const indexes: number[] = [];
  for await (const { index } of bench.map([0, 1, 2], task, { concurrency: 2 })) {
    indexes.push(index);
    if (indexes.length === 2) slow.open();
  }
  expect(indexes).toEqual([1, 2, 0]);
});

it('yields outcomes in the order of the inputs with ordered, and still pulls few inputs', async ({
  bench,
}) => {
  const slow = gate();
  const source = counted(100);
  const task = ({ input }: { input: number }) => (input === 0 ? slow.promise : undefined);
  const outcomes = bench.run(source.inputs, task, { concurrency: 2, ordered: true });
  await expect.poll(() => source.pulled).toBe(4);
  await sleep(100);
  expect(source.pulled).toBe(4);
  slow.open();
  expect((await outcomes).map(({ index }) => index)).toEqual(range(100));
});

it('answers several calls of next() at once, in order', async ({ bench }) => {
  const outcomes = bench.map(range(3), ({ input }) => input, { ordered: true });
  const results = await Promise.all(range(5).map(() => outcomes.next()));
  expect(results.map(({ done, value }) => (done ? 'done' : value.index))).toEqual([0, 1, 2, 'done', 'done']);
});

it('runs without a loop when it is awaited, once, and resolves to a summary', async ({ bench }) => {
  let calls = 0;
  const error = new Error('no');
  const task = ({ input }: { input: number }) => {
    calls++;
    if (input === 2) throw error;
  };
  const outcomes = bench.map(range(5), task, { retries: 1 });
  const summary = { succeeded: 4, failed: 1, skipped: 0, retried: 1 };
  const [first, second] = await Promise.all([outcomes, outcomes]);
  expect([first, second]).toMatchObject([summary, summary]);
  expect(first.lastFailure).toEqual({ input: 2, index: 2, attempt: 2, error });
  expect(calls).toBe(6);
  expect(await outcomes.next()).toEqual({ done: true, value: undefined });
  await expect.poll(() => bench.leased).toBe(0);
});

it('resolves to the summary of the whole job after a loop, and to what was done after a loop that was left', async ({
  bench,
}) => {
  const whole = bench.map(range(3), () => {});
  expect(await collect(whole)).toHaveLength(3);
  expect(await whole).toMatchObject({ succeeded: 3, failed: 0 });
  const left = bench.map(range(100), () => {}, { concurrency: 1 });
  for await (const { index } of left) if (index === 1) break;
  expect((await left).succeeded).toBeLessThan(6);
});

it('rejects with the error that ended the job, also if a loop has received it', async ({ bench }) => {
  const failing = () => bench.map(range(5), () => Promise.reject(new Error('no')), { stopAfterFailures: 1 });
  const refusal = expect.objectContaining({ name: 'TooManyFailuresError' }) as Error;
  await expect(Promise.resolve(failing())).rejects.toEqual(refusal);
  const outcomes = failing();
  await expect(collect(outcomes)).rejects.toEqual(refusal);
  await expect(Promise.resolve(outcomes)).rejects.toEqual(refusal);
});

it('releases a browser that is idle for idleTimeout, and leases one for the next input', async ({
  bench,
}) => {
  const later = gate();
  async function* inputs() {
    yield 'first';
    await later.promise;
    yield 'second';
  }
  const outcomes = bench.map(inputs(), ({ session }) => session.session_id, { idleTimeout: 30 });
  expect((await outcomes.next()).value).toMatchObject({ value: 's1' });
  await expect.poll(() => bench.leased).toBe(0);
  expect(bench.released).toEqual(new Map([['s1', 'reused']]));
  later.open();
  expect(await valuesOf(outcomes)).toEqual(['s2']);
});

it.for<[Isolation, locales: string, opened: number]>([
  // Prepared after each of the first two tasks, and after the fourth: the last one is not used.
  ['context', 'de de fr fr', 6],
  // Only the first task has none before it that differs.
  ['context', 'de fr de fr', 5],
  ['storage', 'de de fr fr de', 3],
  ['none', 'de de fr fr de', 3],
])(
  '%s: a task has a context with its own options, and that of the next task is prepared if it can be known (%s)',
  async ([isolation, locales, opened], { bench }) => {
    bench.acceptContexts();
    const inputs = locales.split(' ');
    const task = async ({ page }: { page: FakePage }) => {
      expect(page.isClosed).toBe(false);
      await sleep(5);
      return (page.options as { locale: string }).locale;
    };
    const contextOptions = (input: unknown) => ({ locale: input });
    const options = { isolation, contextOptions, concurrency: 1, ordered: true };
    expect(await valuesOf(bench.map(inputs, task, options))).toEqual(inputs);
    // Each connection adds one page.
    expect(bench.pages).toHaveLength(1 + opened);
  },
);
