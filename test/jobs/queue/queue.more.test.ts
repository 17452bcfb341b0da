import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import type { TaskCallback } from '../../../src/index.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { it } from '../it.js';
import { gate, MapBench, range, type Handles } from '../support.js';
import { TestQueue } from './support.js';

type Task = TaskCallback<Handles, unknown, unknown>;

async function* neverEnding() {
  yield 1;
  await new Promise(() => {});
}

describeWithRedis('a queue', () => {
  const used = useRedis();
  const queueOf = (name: string) => new TestQueue(name, used.redis.url);

  it('returns the outcome of every input, from several workers', async ({ bench }) => {
    const queue = queueOf('several');
    expect(await queue.add(range(40))).toBe(40);
    const task: Task = ({ input }) => ({ doubled: Number(input) * 2 });
    await using one = queue.work(bench, task);
    await using other = queue.work(bench, task, { pagesPerLease: 2 });
    const outcomes = await queue.collect();
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
    expect([first.succeeded + second.succeeded, first.failed + second.failed, bench.leased]).toEqual([
      40, 0, 0,
    ]);
  });

  it('retries a failed task as often as its input allows, and returns the last error', async ({ bench }) => {
    const queue = queueOf('retries');
    await queue.add(['twice', 'always', 'page', 'never again'], { retries: 2, backoff: { delay: 5 } });
    const task: Task = ({ input, attempt }) => {
      if (input === 'page') return { on: () => {}, [Symbol.dispose]: () => {} };
      if (input !== 'twice' || attempt < 3) throw new RangeError(`${String(input)} ${attempt}`);
      return attempt;
    };
    const shouldRetry = (error: unknown) => !(error as Error).message.startsWith('never');
    await using worker = queue.work(bench, task, { shouldRetry });
    expect(await queue.collect()).toMatchObject([
      { status: 'fulfilled', attempts: 3, value: 3 },
      { status: 'rejected', attempts: 3, reason: { name: 'RangeError', message: 'always 3' } },
      { status: 'rejected', attempts: 1, reason: { name: 'TaskResultError', code: 'ERR_TASK_RESULT' } },
      { status: 'rejected', attempts: 1, reason: { name: 'RangeError', message: 'never again 1' } },
    ]);
    expect(await worker.end()).toEqual({ succeeded: 1, failed: 3 });
  });

  it('ends an attempt after the timeout of its input, or without one after that of its worker', async ({
    bench,
  }) => {
    const queue = queueOf('timeouts');
    await queue.add(['hangs'], { taskTimeout: 50, list: 'of-the-input' });
    await queue.add(['hangs'], { list: 'of-the-worker' });
    await using worker = queue.work(bench, () => new Promise(() => {}), { taskTimeout: 70 });
    const messages = (await queue.collect()).map((outcome) => [
      outcome.list,
      outcome.status === 'rejected' && outcome.reason.message,
    ]);
    expect(Object.fromEntries(messages)).toEqual({
      'of-the-input': expect.stringContaining('within 50 ms') as string,
      'of-the-worker': expect.stringContaining('within 70 ms') as string,
    });
    expect(await worker.end()).toEqual({ succeeded: 0, failed: 2 });
  });

  it('adds an input once, however often, and again after its outcome was collected', async ({ bench }) => {
    const queue = queueOf('twice');
    const ran: unknown[] = [];
    for (const inputs of [range(700), range(900)]) await queue.add(inputs);
    await using worker = queue.work(bench, ({ input }) => void ran.push(input), { pagesPerLease: 4 });
    expect((await queue.collect()).map(({ index }) => index)).toEqual(range(900));
    expect(ran.length).toBe(900);
    await queue.add([0], { list: 'another' });
    expect(await queue.collect()).toMatchObject([{ input: 0, list: 'another' }]);
    expect(await worker.end()).toEqual({ succeeded: 901, failed: 0 });
  });

  it('pauses adding while the queue is full: Redis holds a part of a long list', async ({ bench }) => {
    const queue = queueOf('long');
    let pulled = 0;
    const inputs = function* () {
      while (pulled < 3000) yield pulled++;
    };
    const adding = queue.add(inputs(), { maxJobs: 1000 });
    await expect.poll(() => pulled).toBe(1500);
    await using worker = queue.work(bench, () => 'done', { pagesPerLease: 10 });
    const outcomes = await queue.collect();
    expect([await adding, outcomes.length]).toEqual([3000, 3000]);
    await worker.end();
  });

  it.each<[what: string, wait: (queue: TestQueue, signal: AbortSignal) => Promise<unknown>]>([
    ['space for inputs', (queue, signal) => queue.add([1], { maxJobs: 1, signal })],
    ['the next input', (queue, signal) => queue.add(neverEnding() as never, { signal })],
    ['an outcome', (queue, signal) => queue.outcomes({ signal }).next()],
    ['the lock of a dead collector', (queue, signal) => queue.outcomes({ signal }).next()],
  ])('ends the wait for %s with the reason of the signal', async (what, wait) => {
    const queue = queueOf('waiting');
    await queue.add(['the queue is full']);
    const client = await used.redis.connect();
    if (what.startsWith('the lock'))
      await client.set('bull:waiting:pooled-browser:collector', 'another', 'PX', 9000);
    const abort = new AbortController();
    const waiting = wait(queue, abort.signal);
    waiting.catch(() => {});
    await sleep(300);
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await client.flushall();
    client.disconnect();
  });

  it('returns the inputs of the running tasks to the queue when a worker is stopped', async ({ bench }) => {
    const queue = queueOf('stopped');
    await queue.add(range(4));
    let running = 0;
    await using first = queue.work(bench, () => (running++, new Promise(() => {})));
    await expect.poll(() => running).toBe(4);
    expect(await first.end()).toEqual({ succeeded: 0, failed: 0 });
    expect(bench.leased).toBe(0);
    // At once: the locks of a dead worker would last 30 s.
    await using second = queue.work(bench, ({ attempt }) => attempt);
    expect((await queue.collect()).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
    await second.end();
  });

  it('stops an idle worker at once', async ({ bench }) => {
    await using worker = queueOf('idle').work(bench, () => {});
    await sleep(300);
    expect(await worker.end()).toEqual({ succeeded: 0, failed: 0 });
    expect(bench.granted).toEqual([]);
  });

  it('releases browsers while the queue is empty, and leases again for an input', async ({ bench }) => {
    const queue = queueOf('load');
    await using worker = queue.work(bench, () => 1, { idleTimeout: 50 });
    await queue.add(['first']);
    await expect.poll(() => [bench.granted.length, bench.leased]).toEqual([1, 0]);
    expect(bench.released).toEqual(new Map([['s1', 'reused']]));
    await queue.add(['second'], { list: 'second' });
    const sessions = (await queue.collect()).map(({ sessionId }) => sessionId);
    expect(new Set(sessions)).toEqual(new Set(['s1', 's2']));
    await worker.end();
  });

  it('does not hold inputs for which its pool has no browser', async ({ bench }) => {
    await using full = await MapBench.start(0);
    bench.size = 1;
    const queue = queueOf('shared');
    await queue.add(range(6));
    await using waiting = queue.work(full, () => 'never', { acquireTimeout: 200, pollTimeout: 100 });
    await expect.poll(() => full.service.of('acquire').length).toBeGreaterThan(0);
    await using working = queue.work(bench, () => 'done');
    expect((await queue.collect()).map(({ status }) => status)).toEqual(Array(6).fill('fulfilled'));
    expect(await waiting.end()).toEqual({ succeeded: 0, failed: 0 });
    expect(await working.end()).toEqual({ succeeded: 6, failed: 0 });
  });

  it('ends with the error of the service, and returns the input to the queue', async ({ bench }) => {
    const queue = queueOf('refused');
    bench.service.script('acquire', { status: 403, json: { code: 'forbidden', message: 'no' } });
    await queue.add([1]);
    await using refused = queue.work(bench, () => 'never');
    await expect(refused.ended).rejects.toMatchObject({ name: 'PoolServiceError', status: 403 });
    await using other = await MapBench.start();
    await using worker = queue.work(other, ({ attempt }) => attempt);
    expect(await queue.collect()).toMatchObject([{ value: 1, attempts: 1 }]);
    await worker.end();
  });

  it('runs no more tasks in a period than the limiter allows', async ({ bench }) => {
    const queue = queueOf('limited');
    const began = performance.now();
    await queue.add(range(6));
    const times: number[] = [];
    const limiter = { max: 2, duration: 1_500 };
    await using worker = queue.work(bench, () => void times.push(performance.now()), { limiter });
    await queue.collect();
    // The third period begins two periods after the first, which begins after `began`. Clocks and rounding differ.
    expect(times[5]! - began).toBeGreaterThan(2_900);
    await worker.end();
  });

  it('holds back 100 inputs of a busy host, and leaves the others to other workers', async ({ bench }) => {
    const queue = queueOf('held');
    await queue.add(range(300));
    const options = { hostOf: () => 'busy', hostDelay: 1_000_000, concurrency: 1, pagesPerLease: 2 };
    let ran = 0;
    const client = await used.redis.connect();
    onTestFinished(() => client.disconnect());
    await using worker = queue.work(bench, () => void ran++, options);
    await expect.poll(() => client.llen('bull:held:active')).toBeGreaterThanOrEqual(100);
    await sleep(200);
    // Redis returns one more with the answer to the finished job.
    expect(await client.llen('bull:held:active')).toBeLessThanOrEqual(101);
    expect(ran).toBe(1);
    await worker.end();
    expect(await client.llen('bull:held:active')).toBe(0);
  });

  it('reports the progress of the whole queue', async ({ bench }) => {
    const queue = queueOf('progress');
    const open = gate();
    await queue.add(range(10));
    await using worker = queue.work(bench, () => open.promise, { concurrency: 3, workerName: 'constructor' });
    await expect.poll(() => bench.leased).toBe(3);
    const reports: unknown[] = [];
    const onProgress = (progress: unknown) => {
      reports.push(progress);
      open.open();
    };
    for await (const { status } of queue.outcomes({ total: 10, onProgress }))
      expect(status).toBe('fulfilled');
    const first = {
      succeeded: 0,
      failed: 0,
      waiting: 7,
      running: 3,
      workers: { constructor: 3 },
      rate: 0,
      total: 10,
    };
    expect(reports[0]).toEqual(first);
    expect(reports.at(-1)).toMatchObject({ succeeded: 10, failed: 0, waiting: 0, running: 0, timeLeft: 0 });
    await worker.end();
  });
});
