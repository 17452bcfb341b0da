import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { MapProgress } from '../../src/index.js';
import { it, warningsOfTest } from './it.js';
import { gate, range } from './support.js';

function reporting() {
  const reports: MapProgress[] = [];
  return { reports, onProgress: (progress: MapProgress) => void reports.push(progress) };
}

it('reports the progress at intervals, and the exact counts at the end', async ({ bench }) => {
  const { reports, onProgress } = reporting();
  const task = async ({ input, attempt }: { input: number; attempt: number }) => {
    await sleep(10);
    if (input === 3 || (input === 5 && attempt === 1)) throw new Error('no');
  };
  await bench.run(range(60), task, { concurrency: 2, retries: 1, onProgress });
  const counts = { succeeded: 59, failed: 1, skipped: 0, retried: 2, running: 0, waiting: 0, leases: 0 };
  expect(reports.at(-1)).toMatchObject({ ...counts, total: 60, timeLeft: 0 });
  // There are 62 attempts, each with a start and an end.
  expect(reports.length).toBeGreaterThan(1);
  expect(reports.length).toBeLessThan(60);
  const first = reports.find(({ succeeded }) => succeeded > 0 && succeeded < 59)!;
  expect(first.rate).toBeGreaterThan(0);
  expect(first.timeLeft).toBeCloseTo(((60 - first.succeeded - first.failed) / first.rate) * 1000);
  expect(first.leases).toBeLessThanOrEqual(2);
});

it('reports running attempts with their age, oldest first, and the latest failure', async ({ bench }) => {
  const { reports, onProgress } = reporting();
  const error = new Error('of the first attempt');
  const end = gate();
  const task = async ({ input, attempt }: { input: string; attempt: number }) => {
    if (input === 'a' && attempt === 1) throw error;
    await end.promise;
  };
  const outcomes = bench.run(['a', 'b'], task, { retries: 1, onProgress });
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

it('reports no failure of a task that was ended with the job', async ({ bench }) => {
  const { reports, onProgress } = reporting();
  const stop = new AbortController();
  const reason = new Error('of the caller');
  const task = ({ signal }: { signal: AbortSignal }) => {
    stop.abort(reason);
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error)),
    );
  };
  await expect(bench.run(['a'], task, { onProgress, signal: stop.signal })).rejects.toBe(reason);
  expect(reports.at(-1)).toMatchObject({ running: 0, failed: 0 });
  expect(reports.at(-1)).not.toHaveProperty('lastFailure');
});

it('names the slowest of several hosts', async ({ bench }) => {
  const { reports, onProgress } = reporting();
  const fast = gate();
  let ended = 0;
  const began = performance.now();
  // A busy machine may delay the fast tasks.
  const task = async ({ input }: { input: string }) => {
    if (input.includes('fast') && ++ended === 2) fast.open();
    if (input.includes('fast')) return;
    await fast.promise;
    await sleep(50 + performance.now() - began);
  };
  const inputs = ['http://fast/1', 'http://slow/1', 'http://slow/2', 'http://fast/2'];
  await bench.run(inputs, task, { onProgress });
  const { slowestHost } = reports.at(-1)!;
  expect(slowestHost).toMatchObject({ host: 'slow', attempts: 2 });
  expect(slowestHost!.average).toBeGreaterThan(40);
  await bench.run(['http://slow/1'], task, { onProgress });
  expect(reports.at(-1)).not.toHaveProperty('slowestHost');
});

it.for([
  { total: undefined, timeLeft: undefined },
  { total: 3, timeLeft: 0 },
  { total: 2, timeLeft: 0 },
])('with inputs of unknown number and total $total, timeLeft ends at $timeLeft', async (end, { bench }) => {
  const { reports, onProgress } = reporting();
  await bench.run(range(3).values(), () => {}, { onProgress, total: end.total });
  expect(reports.at(-1)?.total).toBe(end.total);
  expect(reports.at(-1)?.timeLeft).toBe(end.timeLeft);
});

it('warns when the listener throws, and continues', async ({ bench }) => {
  const warnings = warningsOfTest();
  const onProgress = () => {
    throw new Error('bad listener');
  };
  expect(await bench.run([1], () => {}, { onProgress })).toHaveLength(1);
  await expect.poll(() => warnings.join('\n')).toContain('onProgress threw: Error: bad listener');
});
