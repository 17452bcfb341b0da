import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, vi } from 'vitest';
import { InvalidOptionError, type LibraryTypes, type MapOptions } from '../../src/index.js';
import { stepClock, useFakeClock, useRealClock } from '../support/fake-clock.js';
import { it } from './it.js';
import { collect, counted, gate, range, type MapBench } from './support.js';

/** Duration of a task, in ms. */
const TASK = 100;
/** Time that passes in a test with the fake clock, in ms. Less than after which a browser that does not respond is lost. */
const TIME = 5000;

describe('with the clock of the library', () => {
  interface Started {
    host: string;
    at: number;
    /** Tasks of this host that run then, with this one. */
    running: number;
  }

  interface Plan extends MapOptions<LibraryTypes, string> {
    pages?: number;
    /** `retryAfter` of the task. */
    pauses?: (input: string) => number;
    isDelivered?: boolean;
  }

  /** Runs tasks for inputs such as `a1`, whose host is `a`, for some fake time. Resolves with their starts. */
  async function play(
    bench: MapBench,
    inputs: Iterable<string> | AsyncIterable<string>,
    { pages = 4, pauses = () => 0, isDelivered = true, ...options }: Plan,
  ): Promise<Started[]> {
    const ready = gate();
    const starts: Started[] = [];
    const running: string[] = [];
    let began = 0;
    let open = 0;
    // Real time passes until each page is open. After that, nothing leaves this process.
    async function* all() {
      yield* range(pages).map(() => '-open');
      await ready.promise;
      yield* inputs;
    }
    const task = async ({ input }: { input: string }) => {
      if (input === '-open') {
        if (++open === pages) {
          useFakeClock({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
          began = performance.now();
          ready.open();
        }
        return ready.promise;
      }
      const host = input[0]!;
      running.push(host);
      starts.push({
        host,
        at: performance.now() - began,
        running: running.filter((one) => one === host).length,
      });
      await new Promise((resolve) => setTimeout(resolve, TASK));
      running.splice(running.indexOf(host), 1);
      if (pauses(input) > 0) throw Object.assign(new Error('busy'), { retryAfter: pauses(input) });
      return undefined;
    };
    const outcomes = bench.map(all(), task, {
      concurrency: 1,
      pagesPerLease: pages,
      isolation: 'none',
      hostOf: ([host]: string) => (host === '-' ? undefined : host),
      ...options,
    } as MapOptions);
    const first = Promise.all(range(pages).map(() => outcomes.next()));
    await ready.promise;
    const rest = isDelivered ? first.then(() => collect(outcomes)) : undefined;
    rest?.catch(() => {});
    await vi.advanceTimersByTimeAsync(TIME);
    useRealClock();
    await outcomes.return!();
    return starts;
  }

  const timesOf = (starts: Started[], host: string) =>
    starts.filter((start) => start.host === host).map(({ at }) => Math.round(at));

  it('runs hostConcurrency tasks at once for a host, and those of other hosts meanwhile', async ({
    bench,
  }) => {
    const inputs = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', '-1', '-2', '-3'];
    const starts = await play(bench, inputs, { hostConcurrency: 2 });
    expect(timesOf(starts, 'a')).toEqual([0, 0, 100, 100, 200]);
    // Two of four pages are free. Inputs without a host have no limits.
    expect(timesOf(starts, 'b')).toEqual([0]);
    expect(timesOf(starts, '-')).toEqual([0, 100, 100]);
    expect(Math.max(...starts.filter(({ host }) => host === 'a').map(({ running }) => running))).toBe(2);
  });

  it('starts the tasks of a host hostDelay apart, also if one of them starts late', async ({ bench }) => {
    bench.acceptContexts();
    bench.openPage = (options) =>
      new Promise((resolve) => (options && 'late' in options ? setTimeout(resolve, 500) : resolve()));
    const contextOptions = (input: string) => (input === 'a1' ? { late: true } : undefined);
    const starts = await play(bench, ['a1', 'a2', 'b1', 'a3', 'b2'], { hostDelay: 1000, contextOptions });
    expect(timesOf(starts, 'a')).toEqual([500, 1500, 2500]);
    expect(timesOf(starts, 'b')).toEqual([0, 1000]);
  });

  it('starts no task of a host before the retryAfter of an earlier one, and others meanwhile', async ({
    bench,
  }) => {
    const pauses = (input: string) => (input === 'a1' ? 3000 : 0);
    const starts = await play(bench, ['a1', 'a2', 'b1', 'b2', 'a3'], { hostConcurrency: 1, pauses });
    expect(timesOf(starts, 'a')).toEqual([0, 3100, 3200]);
    expect(timesOf(starts, 'b')).toEqual([0, 100]);
  });

  it('holds back 1,000 inputs of a busy host', async ({ bench }) => {
    const source = counted(5000);
    async function* inputs() {
      for await (const input of source.inputs) yield input === 999 ? 'b' : 'a';
    }
    const starts = await play(bench, inputs(), { hostDelay: 1_000_000, pages: 2 });
    // The other inputs that were pulled are held back.
    expect(starts.map(({ host }) => host)).toEqual(['a', 'b']);
    expect(source.pulled).toBe(1002);
  });

  it('starts no held task while the loop is busy, unless its outcome is the next one in order', async ({
    bench,
  }) => {
    const inputs = range(40).map((index) => `a${index}`);
    const plan = { hostConcurrency: 1, isDelivered: false, pages: 2 };
    const starts = await play(bench, inputs, plan);
    // Four outcomes wait for the loop.
    expect(starts.length).toBeLessThanOrEqual(4 + 2);
    expect(await play(bench, inputs, { ...plan, ordered: true })).toHaveLength(40);
  });
});

it('starts the next task of a host also if its delay ends while tasks are assigned', async ({ bench }) => {
  // On a busy machine, time passes between two looks at the clock.
  stepClock(3);
  const delays = range(8).map((count) => 3 * count + 10);
  const options = { concurrency: 1, hostOf: () => 'a' };
  const runs = delays.map((hostDelay) => bench.run(range(3), () => {}, { ...options, hostDelay }));
  for (const outcomes of await Promise.all(runs)) expect(outcomes).toHaveLength(3);
});

const URL_OF_HOST = 'https://example.com:8443/page';

it('finds the host of a URL, and of an object with one', async ({ bench }) => {
  let running = 0;
  let most = 0;
  const task = async () => {
    most = Math.max(most, ++running);
    await sleep(5);
    running--;
  };
  const inputs = [URL_OF_HOST, new URL(URL_OF_HOST), { url: URL_OF_HOST }, { url: new URL(URL_OF_HOST) }];
  const options = { concurrency: 1, pagesPerLease: 4, hostConcurrency: 1 };
  expect(await bench.run(inputs, task, options)).toHaveLength(4);
  expect(most).toBe(1);
});

it.for([['example.com/page'], ['data:text/html,'], [{ id: 1 }], [7], [null]])(
  'needs hostOf for %j, if hosts have limits',
  async ([input], { bench }) => {
    const limited = bench.run([input], () => {}, { hostDelay: 1 });
    await expect(limited).rejects.toThrow('Input 0 is no URL and has no url');
    await expect(limited).rejects.toBeInstanceOf(InvalidOptionError);
    expect(await bench.run([input], () => {}, { hostDelay: 1, hostOf: () => undefined })).toHaveLength(1);
    expect(await bench.run([input], () => {})).toHaveLength(1);
    const wrong = bench.run([input], () => {}, { hostDelay: 1, hostOf: () => 7 as never });
    await expect(wrong).rejects.toThrow('hostOf must return the name of a host');
  },
);
it('limits and spaces the tasks of each host of a job, and honours the retryAfter of a task', async ({
  bench,
}) => {
  const seen = { now: 0, most: 0, at: [] as number[] };
  const task = async ({ input, attempt }: { input: string; attempt: number }) => {
    if (input.startsWith('http://other')) return;
    seen.most = Math.max(seen.most, ++seen.now);
    seen.at.push(performance.now());
    await sleep(30);
    seen.now--;
    const retryAfter = 1000;
    if (input.endsWith('/3') && attempt === 1) throw Object.assign(new Error('Too many'), { retryAfter });
  };
  const inputs = range(6).flatMap((id) => [`http://limited/${id}`, `http://other/${id}`]);
  const options = { concurrency: 2, pagesPerLease: 4, hostConcurrency: 2, hostDelay: 50, retries: 1 };
  const outcomes = await bench.run(inputs, task, options);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(12);
  const retried = outcomes.filter(({ attempts }) => attempts === 2);
  expect(retried.map(({ input }) => input)).toEqual(['http://limited/3']);
  expect(seen.most).toBeLessThanOrEqual(2);
  expect(seen.at).toHaveLength(7);
  const gaps = seen.at.slice(1).map((at, index) => at - seen.at[index]!);
  // A task may start late, but none starts early.
  expect(seen.at.at(-1)! - seen.at[0]!).toBeGreaterThan(1000);
  expect(Math.max(...gaps)).toBeGreaterThan(800);
});
