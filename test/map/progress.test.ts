import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { MapProgress } from '../../src/index.js';
import { collect, gate, MapBench, range } from './support.js';

it('reports the progress at intervals, and the exact counts at the end', async () => {
  await using bench = await MapBench.start();
  const reports: MapProgress[] = [];
  const task = async ({ input, attempt }: { input: number; attempt: number }) => {
    await sleep(10);
    if (input === 3 || (input === 5 && attempt === 1)) throw new Error('no');
  };
  const onProgress = (progress: MapProgress) => reports.push(progress);
  await collect(bench.map(range(60), task, { concurrency: 2, retries: 1, onProgress }));
  const last = reports.at(-1)!;
  expect(last).toMatchObject({
    done: 60,
    failed: 1,
    skipped: 0,
    retried: 2,
    running: 0,
    waiting: 0,
    leases: 0,
  });
  expect(last).toMatchObject({ total: 60, timeLeft: 0 });
  // There are 62 attempts, each with a start and an end.
  expect(reports.length).toBeGreaterThan(1);
  expect(reports.length).toBeLessThan(60);
  const first = reports.find(({ done }) => done > 0 && done < 60)!;
  expect(first.rate).toBeGreaterThan(0);
  expect(first.timeLeft).toBeCloseTo(((60 - first.done) / first.rate) * 1000);
  expect(first.leases).toBeLessThanOrEqual(2);
});

it('reports the running attempts with their age, the oldest first, and the latest failure', async () => {
  await using bench = await MapBench.start();
  const reports: MapProgress[] = [];
  const error = new Error('of the first attempt');
  const end = gate();
  const task = async ({ input, attempt }: { input: string; attempt: number }) => {
    if (input === 'a' && attempt === 1) throw error;
    await end.promise;
  };
  const options = { retries: 1, onProgress: (progress: MapProgress) => void reports.push(progress) };
  const outcomes = collect(bench.map(['a', 'b'], task, options));
  await expect.poll(() => reports.at(-1)?.running).toBe(2);
  // Without any change, the ages are reported again.
  const count = reports.length;
  await expect.poll(() => reports.length).toBeGreaterThan(count);
  const { attempts, lastFailure } = reports.at(-1)!;
  expect(attempts).toMatchObject([
    { input: 'b', index: 1, attempt: 1 },
    { input: 'a', index: 0, attempt: 2 },
  ]);
  expect(attempts[0]!.elapsed).toBeGreaterThan(attempts[1]!.elapsed);
  expect(lastFailure).toEqual({ input: 'a', index: 0, attempt: 1, error });
  end.open();
  await outcomes;
  expect(reports.at(-1)).toMatchObject({ running: 0, attempts: [], lastFailure: { input: 'a' } });
});

it('reports timeLeft only if the number of inputs is known or given as total', async () => {
  await using bench = await MapBench.start();
  for (const total of [undefined, 3]) {
    const reports: MapProgress[] = [];
    const onProgress = (progress: MapProgress) => void reports.push(progress);
    await collect(bench.map(range(3).values(), () => {}, { onProgress, total }));
    expect(reports.at(-1)?.total).toBe(total);
    expect(reports.at(-1)?.timeLeft).toBe(total && 0);
  }
});

it('warns when the listener throws, and continues', async () => {
  await using bench = await MapBench.start();
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(String(warning));
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const onProgress = () => {
    throw new Error('bad listener');
  };
  expect(await collect(bench.map([1], () => {}, { onProgress }))).toHaveLength(1);
  await expect.poll(() => warnings.join('\n')).toContain('onProgress threw: Error: bad listener');
});
