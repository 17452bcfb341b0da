import type { Redis } from 'ioredis';
import { Queue } from 'bullmq';
import { expect, onTestFinished } from 'vitest';
import {
  beginList,
  endList,
  forgetLists,
  openQueue,
  readLists,
} from '../../../src/jobs/queue/input-lists.js';
import { RedisLink } from '../../../src/jobs/queue/redis.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { it, warningsOfTest } from '../it.js';
import { gate, range } from '../support.js';
import { TestQueue } from './support.js';

const LOST = {
  name: 'QueueError',
  message: expect.stringMatching(/^Redis has lost the queue \w+: it was emptied, or restarted/) as string,
};

describeWithRedis('a queue with jobs of another program', () => {
  const used = useRedis();

  /** A queue, BullMQ's own class for it, and a client. */
  async function open(name: string): Promise<{ queue: TestQueue; jobs: Queue; client: Redis }> {
    const jobs = new Queue(name, { connection: { host: '127.0.0.1', port: used.redis.port } });
    const client = await used.redis.connect();
    onTestFinished(async () => {
      client.disconnect();
      await jobs.close();
    });
    return { queue: new TestQueue(name, used.redis.url), jobs, client };
  }

  const reports = (warnings: Error[], name: string): string[] => {
    const pattern = new RegExp(
      `^The job (\\S+) of the queue ${name} was not added by enqueueInputs: (.*)\\. Use`,
    );
    return warnings.flatMap(({ message }) => pattern.exec(message)?.slice(1).join(': ') ?? []).toSorted();
  };

  it('runs and collects its inputs; the other jobs fail, are reported and stay', async ({ bench }) => {
    const { queue, jobs, client } = await open('mixed');
    const warnings = warningsOfTest();
    await jobs.add('mail', {}, { jobId: 'broken' });
    await client.hset('bull:mixed:broken', 'data', '{"to":');
    await jobs.add('mail', { index: 5, to: 'somebody' }, { jobId: 'mail' });
    await queue.add(range(250));
    await jobs.add('mail', 'text', { jobId: 'text' });
    // As an input, but not added by enqueueInputs: the outcome would be that of another input.
    await jobs.add('mail', { index: 0, input: 'x', list: 'default' }, { jobId: 'shaped' });
    for (let start = 0; start < 2; start++) {
      await using worker = queue.work(bench, ({ input }) => input, { pagesPerLease: 8 });
      await expect.poll(() => jobs.getFailedCount()).toBe(4);
      const collected = await queue.collect();
      expect(collected.map(({ index }) => index)).toEqual(start === 0 ? range(250) : [0]);
      expect(collected.every(({ status }) => status === 'fulfilled')).toBe(true);
      await worker.end();
      await queue.add([0]);
    }
    const ids = ['broken', 'mail', 'text', 'shaped'];
    const failed = ids.map((id) => `${id}: it is moved to the failed jobs`);
    const skipped = ids.map((id) => `${id}: its result is not collected`);
    expect(reports(warnings, 'mixed')).toEqual([...failed, ...skipped, ...skipped].toSorted());
    expect(await client.hget('bull:mixed:mail', 'failedReason')).toMatch(
      /^The job mail of the queue mixed was/,
    );
  });

  it('reports more of them than a collector reads at once', async () => {
    const { queue, jobs, client } = await open('many');
    const warnings = warningsOfTest();
    for (const id of range(250)) {
      await client.hset(`bull:many:x${id}`, { name: 'mail', data: '{', opts: '{}', timestamp: 1 });
      await client.zadd('bull:many:failed', id, `x${id}`);
    }
    await queue.add([]);
    expect(await queue.collect()).toEqual([]);
    expect([reports(warnings, 'many').length, await jobs.getFailedCount()]).toEqual([250, 250]);
  });

  it('does not take the result of another program for that of a task', async () => {
    const { queue, jobs, client } = await open('taken');
    await queue.add(['a', 'b', 'c', 'd']);
    const facts = { sessionId: 's', replays: 'x', artifacts: [1], downloads: [null] };
    const other = { index: 7, input: 'x', list: 'x', attempts: 9, status: 'x', other: 1, ...facts };
    const values = ['{"index":7}', 'no JSON', JSON.stringify({ ...other, value: 1, reason: 'x' })];
    for (const [place, { id }] of (await jobs.getWaiting()).entries()) {
      const value = values[place];
      const progress = JSON.stringify({ ...other, value: 1, reason: { message: 'bad' } });
      const fields = value === undefined ? { progress, failedReason: 'bad' } : { returnvalue: value };
      await client.lrem('bull:taken:wait', 1, id!);
      await client.hset(`bull:taken:${id}`, fields);
      await client.zadd(`bull:taken:${value === undefined ? 'failed' : 'completed'}`, place, id!);
    }
    const message = expect.stringContaining('was completed by another program') as string;
    const reason = { name: 'QueueError', code: 'ERR_QUEUE', message };
    const collected = await queue.collect();
    expect(collected.toSorted((one, next) => one.index - next.index)).toMatchObject([
      { status: 'rejected', index: 0, input: 'a', reason },
      { status: 'rejected', index: 1, input: 'b', reason },
      { status: 'fulfilled', index: 2, input: 'c', list: 'default', attempts: 0, value: 1, sessionId: 's' },
      { status: 'rejected', index: 3, input: 'd', list: 'default', attempts: 0, reason: { message: 'bad' } },
    ]);
    // The fields of a failure have no value, those of a success no reason, and nothing else is passed on.
    const names = collected.flatMap((outcome) => Object.keys(outcome));
    for (const name of ['other', 'replays', 'artifacts', 'downloads']) expect(names).not.toContain(name);
    expect(collected.find(({ index }) => index === 2)).not.toHaveProperty('reason');
    expect(collected.find(({ index }) => index === 3)).not.toHaveProperty('value');
  });

  it('collects an input that another program has failed without a reason', async () => {
    const { queue, jobs, client } = await open('failed');
    await queue.add(['a']);
    const [{ id } = {}] = await jobs.getWaiting();
    await client.lrem('bull:failed:wait', 1, id!);
    await client.hset(`bull:failed:${id}`, 'atm', 'many');
    await client.zadd('bull:failed:failed', 1, id!);
    expect(await queue.collect()).toEqual([
      {
        status: 'rejected',
        index: 0,
        input: 'a',
        list: 'default',
        attempts: 0,
        reason: { message: 'The job has no reason.' },
      },
    ]);
  });

  /** What BullMQ, or its scripts in Redis, read without a test. */
  const UNREADABLE = [
    ['opts', '{"attempts":'],
    ['opts', 'null'],
    ['progress', '{'],
    ['parent', '{'],
    ['parent', 'null'],
    ['parentKey', 'x'],
    ['ats', 'many'],
    ['atm', '1e308'],
    ['rjk', 'daily'],
    ['data', `{"index":0,"list":"default","input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ] as const;

  it.for(UNREADABLE)('moves a job aside whose %s BullMQ cannot read', async ([field, value], { bench }) => {
    const { queue, jobs, client } = await open('unreadable');
    await client.flushall();
    const warnings = warningsOfTest();
    await queue.add(['a']);
    // Taken by itself, and with the end of another job.
    for (const jobId of ['x', 'y']) {
      await jobs.add('mail', {}, { jobId });
      await client.hset(`bull:unreadable:${jobId}`, field, value);
    }
    await queue.add(['b'], { list: 'second' });
    await using worker = queue.work(bench, ({ input }) => input);
    const inputs = (await queue.collect()).map(({ input }) => input);
    expect(new Set(inputs)).toEqual(new Set(['a', 'b']));
    await expect.poll(() => jobs.getFailedCount()).toBe(2);
    const moved = 'it is moved to the failed jobs';
    expect(reports(warnings, 'unreadable')).toEqual(expect.arrayContaining([`x: ${moved}`, `y: ${moved}`]));
    await worker.end();
  });

  it.for(['progress', 'parent', 'opts', 'ats'])(
    'runs and collects an input whose %s another program has replaced by what BullMQ cannot read',
    async (field, { bench }) => {
      const { queue, jobs, client } = await open('damaged');
      await client.flushall();
      await queue.add(['a', 'b']);
      const [first, second] = await jobs.getWaiting();
      await client.hset(`bull:damaged:${first!.id}`, field, field === 'parent' ? 'null' : '{');
      const worker = queue.work(bench, ({ input }) => input);
      await expect.poll(() => jobs.getCompletedCount()).toBe(2);
      await worker.end();
      await client.hset(`bull:damaged:${second!.id}`, field, field === 'parent' ? 'null' : '{');
      const seen: unknown[] = [];
      for await (const { status } of queue.outcomes({ onProgress: () => {} })) seen.push(status);
      expect(seen).toEqual(['fulfilled', 'fulfilled']);
    },
  );

  it('ends although Redis has lost the data of a job, and reports it', async () => {
    const { queue, client } = await open('evicted');
    const warnings = warningsOfTest();
    await client.zadd('bull:evicted:completed', 1, 'gone');
    await queue.add([]);
    expect(await queue.collect()).toEqual([]);
    expect(warnings.map(({ message }) => message).join()).toContain(
      'The job gone of the queue evicted is lost: Redis has no data of it.',
    );
  });

  it('adds no input that workers would receive as something else', async () => {
    const { queue } = await open('refused');
    await expect(queue.add([1, { price: Number.NaN }])).rejects.toMatchObject({
      name: 'InvalidOptionError',
      message: expect.stringContaining(
        'Input 1 is not data that JSON can hold: input.price is NaN.',
      ) as string,
    });
  });
});

describeWithRedis('Redis that comes back empty', () => {
  const used = useRedis();

  it.for(['while workers run', 'while inputs are added'])(
    'ends the collector with a reason, %s',
    async (when) => {
      const queue = new TestQueue('emptied', used.redis.url);
      const client = await used.redis.connect();
      const rest = gate();
      async function* inputs() {
        yield* range(600);
        if (when === 'while inputs are added') await rest.promise;
        yield 600;
      }
      const adding = queue.add(inputs() as never);
      const collected = queue.outcomes().next();
      collected.catch(() => {});
      await expect.poll(() => client.hlen('bull:emptied:pooled-browser:lists')).toBe(2);
      if (when === 'while workers run') await adding;
      await client.flushall();
      await expect(collected).rejects.toMatchObject(LOST);
      rest.open();
      if (when === 'while inputs are added') await expect(adding).rejects.toMatchObject(LOST);
      // The message says to add the inputs again: a new collector accepts the new lists.
      await client.flushall();
      await queue.add([]);
      expect(await queue.collect()).toEqual([]);
      client.disconnect();
    },
  );
});

describeWithRedis('a list that is begun when the last outcome was collected', () => {
  const used = useRedis();

  it('is not forgotten', async () => {
    await using redis = await RedisLink.open({ connection: used.redis.url, redisTimeout: 5000 });
    const queue = await openQueue('begun', redis, { prefix: 'bull' });
    await beginList(queue, 'first');
    await endList(queue, 'first', 1);
    await beginList(queue, 'second');
    // Each object has something of this name.
    expect(await readLists(queue, false, 'constructor')).toEqual({ exist: false, areComplete: false });
    expect(await forgetLists(queue)).toBe(false);
    await endList(queue, 'second', 1);
    expect(await forgetLists(queue)).toBe(true);
  });
});
