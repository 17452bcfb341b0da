import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { collectOutcomes, enqueueInputs, type WorkOptions } from '../../../src/bullmq.js';
import type { TaskCallback } from '../../../src/index.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { gate, MapBench, range, type Handles } from '../support.js';
import { collectAll, TestWorker } from './support.js';

describeWithRedis('a queue', () => {
  const used = useRedis();
  const connection = () => ({ connection: used.redis.url });

  function startWorker(
    bench: MapBench,
    name: string,
    fn: TaskCallback<Handles, unknown, unknown>,
    options: WorkOptions = {},
  ): TestWorker {
    return new TestWorker(bench, name, fn, { ...connection(), ...options });
  }

  it('returns the outcome of every input, from several workers', async () => {
    await using bench = await MapBench.start();
    expect(await enqueueInputs('several', range(40), connection())).toBe(40);
    const task = ({ input }: { input: unknown }) => ({ doubled: Number(input) * 2 });
    await using one = startWorker(bench, 'several', task);
    await using other = startWorker(bench, 'several', task, { pagesPerLease: 2 });
    const outcomes = await collectAll('several', used.redis.url);
    expect(outcomes.map(({ index }) => index)).toEqual(range(40));
    expect(outcomes[7]).toEqual({
      status: 'fulfilled',
      index: 7,
      input: 7,
      list: 'default',
      attempts: 1,
      sessionId: expect.stringMatching(/^s\d+$/) as string,
      value: { doubled: 14 },
    });
    const [first, second] = [await one.end(), await other.end()];
    expect([first.done + second.done, first.failed + second.failed, bench.leased]).toEqual([40, 0, 0]);
  });

  it('retries a failed task as often as its input allows, and returns the last error', async () => {
    await using bench = await MapBench.start();
    const attempts = { attempts: 3, backoff: { delay: 5 } };
    await enqueueInputs('retries', ['twice', 'always', 'page', 'never again'], {
      ...connection(),
      ...attempts,
    });
    const task: TaskCallback<Handles, unknown, unknown> = ({ input, attempt }) => {
      if (input === 'page') return { on: () => {}, [Symbol.dispose]: () => {} };
      if (input !== 'twice' || attempt < 3) throw new RangeError(`${String(input)} ${attempt}`);
      return attempt;
    };
    const shouldRetry = (error: unknown) => !(error as Error).message.startsWith('never');
    await using worker = startWorker(bench, 'retries', task, { shouldRetry });
    const outcomes = await collectAll('retries', used.redis.url);
    expect(outcomes).toMatchObject([
      { status: 'fulfilled', attempts: 3, value: 3 },
      { status: 'rejected', attempts: 3, reason: { name: 'RangeError', message: 'always 3' } },
      { status: 'rejected', attempts: 1, reason: { name: 'TaskResultError', code: 'ERR_TASK_RESULT' } },
      { status: 'rejected', attempts: 1, reason: { name: 'RangeError', message: 'never again 1' } },
    ]);
    expect(await worker.end()).toEqual({ done: 4, failed: 3 });
  });

  it('adds an input once, however often the same list is added, and again when its outcome was collected', async () => {
    await using bench = await MapBench.start();
    const ran: unknown[] = [];
    const task = ({ input }: { input: unknown }) => void ran.push(input);
    for (const inputs of [range(700), range(900)]) await enqueueInputs('twice', inputs, connection());
    await using worker = startWorker(bench, 'twice', task, { pagesPerLease: 4 });
    const outcomes = await collectAll('twice', used.redis.url);
    expect(outcomes.map(({ index }) => index)).toEqual(range(900));
    expect(ran.length).toBe(900);
    await enqueueInputs('twice', [0], { ...connection(), list: 'another' });
    expect(await collectAll('twice', used.redis.url)).toMatchObject([{ input: 0, list: 'another' }]);
    expect(await worker.end()).toEqual({ done: 901, failed: 0 });
  });

  it('pauses adding while the queue is full, so that Redis holds a part of a long list', async () => {
    await using bench = await MapBench.start();
    let pulled = 0;
    const inputs = function* () {
      while (pulled < 3000) yield pulled++;
    };
    const adding = enqueueInputs('long', inputs(), { ...connection(), maxJobs: 1000 });
    await expect.poll(() => pulled).toBe(1500);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    await using worker = startWorker(bench, 'long', () => 'done', { pagesPerLease: 10 });
    const outcomes = await collectAll('long', used.redis.url);
    expect([await adding, outcomes.length]).toEqual([3000, 3000]);
    await worker.end();
    // Node's warning of a leak, with many tasks at once.
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([]);
  });

  it('returns the inputs of the running tasks to the queue when a worker is stopped', async () => {
    await using bench = await MapBench.start();
    await enqueueInputs('stopped', range(4), connection());
    const running: unknown[] = [];
    await using first = startWorker(bench, 'stopped', ({ input }) => {
      running.push(input);
      return new Promise(() => {});
    });
    await expect.poll(() => running.length).toBe(4);
    expect(await first.end()).toEqual({ done: 0, failed: 0 });
    expect(bench.leased).toBe(0);
    // At once: the locks of a dead worker would last 30 s.
    await using second = startWorker(bench, 'stopped', ({ attempt }) => attempt);
    const outcomes = await collectAll('stopped', used.redis.url);
    expect(outcomes.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
    await second.end();
  });

  it('stops an idle worker at once', async () => {
    await using bench = await MapBench.start();
    await using worker = startWorker(bench, 'idle', () => {});
    await sleep(300);
    expect(await worker.end()).toEqual({ done: 0, failed: 0 });
    expect(bench.granted).toEqual([]);
  });

  it('releases browsers while the queue is empty, and leases them again for the next input', async () => {
    await using bench = await MapBench.start();
    await using worker = startWorker(bench, 'load', ({ session }) => session.session_id, { idleTimeout: 50 });
    await enqueueInputs('load', ['first'], connection());
    await expect.poll(() => [bench.granted.length, bench.leased]).toEqual([1, 0]);
    expect(bench.released).toEqual(new Map([['s1', 'reused']]));
    await enqueueInputs('load', ['second'], { ...connection(), list: 'second' });
    const outcomes = await collectAll('load', used.redis.url);
    expect(new Set(outcomes.map(({ sessionId }) => sessionId))).toEqual(new Set(['s1', 's2']));
    await worker.end();
  });

  it('does not hold inputs for which its pool has no browser', async () => {
    await using full = await MapBench.start(0);
    await using free = await MapBench.start(1);
    await enqueueInputs('shared', range(6), connection());
    await using waiting = startWorker(full, 'shared', () => 'never', {
      acquireTimeout: 200,
      pollTimeout: 100,
    });
    await expect.poll(() => full.service.of('acquire').length).toBeGreaterThan(0);
    await using working = startWorker(free, 'shared', () => 'done');
    const outcomes = await collectAll('shared', used.redis.url);
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'fulfilled'));
    expect([await waiting.end(), await working.end()]).toEqual([
      { done: 0, failed: 0 },
      { done: 6, failed: 0 },
    ]);
  });

  it('fails a job that another program has added, and ends with the error of the service', async () => {
    const { Queue } = await import('bullmq');
    const queue = new Queue('foreign', { connection: { host: '127.0.0.1', port: used.redis.port } });
    await queue.add('mail', { to: 'somebody' });
    await using bench = await MapBench.start();
    bench.service.script('acquire', { status: 403, json: { code: 'forbidden', message: 'no' } });
    await using worker = startWorker(bench, 'foreign', () => 'never');
    await expect
      .poll(async () => (await queue.getFailed())[0]?.failedReason)
      .toMatch(/not added by enqueueInputs/);
    await enqueueInputs('foreign', [1], connection());
    await expect(worker.ended).rejects.toMatchObject({ name: 'PoolServiceError', status: 403 });
    expect(await queue.getWaitingCount()).toBe(1);
    await queue.close();
  });

  it('runs inputs with a lower priority number first', async () => {
    await using bench = await MapBench.start();
    const lists = [{ list: 'late', priority: 20 }, { list: 'soon', priority: 10 }, { list: 'first' }];
    for (const options of lists)
      await enqueueInputs('urgent', [options.list], { ...connection(), ...options });
    const ran: unknown[] = [];
    const task = ({ input }: { input: unknown }) => void ran.push(input);
    await using worker = startWorker(bench, 'urgent', task, { concurrency: 1 });
    await collectAll('urgent', used.redis.url);
    expect(ran).toEqual(['first', 'soon', 'late']);
    await worker.end();
  });

  it('runs no more tasks in a period than the limiter allows', async () => {
    await using bench = await MapBench.start();
    const began = performance.now();
    await enqueueInputs('limited', range(6), connection());
    const times: number[] = [];
    await using worker = startWorker(bench, 'limited', () => void times.push(performance.now()), {
      limiter: { max: 2, duration: 1_500 },
    });
    await collectAll('limited', used.redis.url);
    // The third period begins two periods after the first, which begins after `began`. Clocks and rounding differ.
    expect(times[5]! - began).toBeGreaterThan(2_900);
    await worker.end();
  });

  it('reports the progress of the whole queue', async () => {
    await using bench = await MapBench.start();
    const open = gate();
    await enqueueInputs('progress', range(10), connection());
    await using worker = startWorker(bench, 'progress', () => open.promise, {
      concurrency: 3,
      workerName: 'w',
    });
    await expect.poll(() => bench.leased).toBe(3);
    const reports: unknown[] = [];
    const outcomes = collectOutcomes('progress', {
      ...connection(),
      total: 10,
      onProgress: (progress) => {
        reports.push(progress);
        open.open();
      },
    });
    for await (const outcome of outcomes) expect(outcome.status).toBe('fulfilled');
    expect(reports[0]).toEqual({
      done: 0,
      failed: 0,
      waiting: 7,
      running: 3,
      workers: { w: 3 },
      rate: 0,
      total: 10,
    });
    expect(reports.at(-1)).toMatchObject({ done: 10, failed: 0, waiting: 0, running: 0, timeLeft: 0 });
    await worker.end();
  });
});
