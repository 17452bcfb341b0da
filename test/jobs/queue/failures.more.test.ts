import { inspect } from 'node:util';
import { expect } from 'vitest';
import { collectOutcomes, enqueueInputs, workPooledBrowsers } from '../../../src/bullmq.js';
import type { BrowserPool } from '../../../src/index.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { TestRedis } from '../../support/redis-server.js';
import { it } from '../it.js';
import { gate, range } from '../support.js';
import { TestQueue } from './support.js';

/** Nothing listens here. */
const NOWHERE = 'redis://127.0.0.1:2';
const GONE =
  /^Redis at 127\.0\.0\.1:\d+ has been unreachable for 5 s: .+\. The inputs and results in it are kept if it stores them \(appendonly yes\)\. Start Redis, then start this program again\.$/;
const UNREACHABLE =
  /^Redis at 127\.0\.0\.1:2 could not be reached within 4 s: .*ECONNREFUSED.*\. Start Redis, or set REDIS_URL \(or the option connection\) to its address\.$/;

describeWithRedis('Redis', () => {
  it('may restart while workers run: every input has one outcome', async ({ bench }) => {
    await using redis = await TestRedis.start();
    const queue = new TestQueue('restart', redis.url);
    await queue.add(range(60));
    const reached = gate();
    const task = ({ index }: { index: number }) => void (index === 20 && reached.open());
    // An input that Redis assigned, but whose answer was lost, is locked for this time.
    await using worker = queue.work(bench, task, { lockDuration: 1000, stalledInterval: 300 });
    const collected = queue.collect();
    await reached.promise;
    await redis.end();
    await redis.begin();
    expect((await collected).map(({ index }) => index)).toEqual(range(60));
    await worker.end();
  });

  it('that is killed and comes back soon is waited for', async ({ bench }) => {
    await using redis = await TestRedis.start();
    const queue = new TestQueue('killed', redis.url);
    await queue.add(range(4));
    const open = gate();
    await using worker = queue.work(bench, () => open.promise);
    await expect.poll(() => bench.leased).toBe(4);
    await redis.end('SIGKILL');
    open.open();
    await redis.begin();
    expect(await queue.collect()).toHaveLength(4);
    expect(await worker.end()).toEqual({ succeeded: 4, failed: 0 });
  });

  it('that is gone ends worker and collector with advice, and releases the browsers', async ({ bench }) => {
    await using redis = await TestRedis.start();
    const queue = new TestQueue('gone', redis.url, { redisTimeout: 5_000 });
    await queue.add(range(4));
    const open = gate();
    await using worker = queue.work(bench, () => open.promise);
    const collected = queue.outcomes().next();
    collected.catch(() => {});
    await expect.poll(() => bench.leased).toBe(4);
    await redis.end();
    const error = { name: 'QueueError', code: 'ERR_QUEUE', message: expect.stringMatching(GONE) as string };
    await expect(collected).rejects.toMatchObject(error);
    open.open();
    await expect(worker.ended).rejects.toMatchObject(error);
    expect(bench.leased).toBe(0);
  });

  it('that does not exist is an error with what to do', async ({ bench }) => {
    const queue = new TestQueue('none', NOWHERE, { redisTimeout: 4_000 });
    await using worker = queue.work(bench, () => {});
    const calls = [queue.add([1]), queue.outcomes().next(), worker.ended];
    await Promise.all(calls.map((call) => expect(call).rejects.toThrow(UNREACHABLE)));
  });
});

describeWithRedis('a password', () => {
  const PASSWORD = 'canary-password-123';

  it('is in no error, and in no result, if a task throws it', async ({ bench }) => {
    await using redis = await TestRedis.start({ password: PASSWORD });
    const wrong = redis.url.replace(PASSWORD, `wrong-${PASSWORD}`);
    const without = { host: '127.0.0.1', port: redis.port };
    const other = { ...without, password: `other-${PASSWORD}` };
    for (const connection of [wrong, without, other, redis.url.replace('redis:', 'rediss:')]) {
      const options = { connection, redisTimeout: 500 };
      const error: unknown = await enqueueInputs('secret', [1], options).catch((caught: unknown) => caught);
      const message = expect.stringMatching(/^Redis at 127\.0\.0\.1:/) as string;
      expect(error).toMatchObject({ name: 'QueueError', message });
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(PASSWORD);
      expect(JSON.stringify(error)).not.toContain(PASSWORD);
    }
    const queue = new TestQueue('thrown', redis.url);
    await queue.add([1]);
    const task = () => Promise.reject(new Error(`${redis.url} ${PASSWORD}`));
    await using worker = queue.work(bench, task);
    const [outcome] = await queue.collect();
    expect(outcome).toMatchObject({ status: 'rejected' });
    expect(JSON.stringify(outcome)).not.toContain(PASSWORD);
    await worker.end();
  });

  it('is not repeated in the message about a wrong address', async () => {
    const connection = `http://user:${PASSWORD}@host`;
    await expect(enqueueInputs('wrong', [1], { connection })).rejects.toThrow(
      'connection must be a URL that begins with redis:// or rediss://, such as redis://127.0.0.1:6379.',
    );
  });
});

describeWithRedis('a collector', () => {
  const used = useRedis();

  it('that stops early leaves the last outcome and all others to the next collector', async ({ bench }) => {
    const queue = new TestQueue('early', used.redis.url);
    await queue.add(range(30));
    await using worker = queue.work(bench, ({ input }) => input);
    const first: number[] = [];
    for await (const { index } of queue.outcomes()) if (first.push(index) === 10) break;
    const rest = (await queue.collect()).map(({ index }) => index);
    expect(rest).toContain(first.at(-1));
    expect([...first.slice(0, -1), ...rest].toSorted((a, b) => a - b)).toEqual(range(30));
    await worker.end();
  });

  it('does not wait for a lock that never ends, and shows a short name without control characters', async () => {
    const client = await used.redis.connect();
    await client.set('bull:locked:pooled-browser:collector', `\u001B[31m${'x'.repeat(10_000)}`);
    const fault: unknown = await new TestQueue('locked', used.redis.url)
      .outcomes()
      .next()
      .catch((error: unknown) => error);
    client.disconnect();
    expect(fault).toMatchObject({ name: 'QueueError', code: 'ERR_QUEUE' });
    expect((fault as Error).message).not.toContain('\u001B');
    expect((fault as Error).message.length).toBeLessThan(500);
  });

  it('is the only one of its queue', async () => {
    const queue = new TestQueue('alone', used.redis.url);
    await queue.add([1]);
    const abort = new AbortController();
    const waiting = queue.outcomes({ signal: abort.signal }).next();
    waiting.catch(() => {});
    const client = await used.redis.connect();
    await expect.poll(() => client.exists('bull:alone:pooled-browser:collector')).toBe(1);
    await expect(queue.outcomes().next()).rejects.toThrow(
      /^The outcomes of the queue alone are collected by process \d+ on .+\. Two collectors would/,
    );
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(await client.exists('bull:alone:pooled-browser:collector')).toBe(0);
    client.disconnect();
  });
});

it('checks its options before it connects', async ({ bench }) => {
  expect(() => collectOutcomes('a:b')).toThrow('queueName must be a name without a colon.');
  expect(() => collectOutcomes('a', { totl: 1 } as object)).toThrow('Did you mean total?');
  const work = (options: object, pool: BrowserPool | string = bench.pool) =>
    workPooledBrowsers('a', pool, () => 1, { connector: bench.connector, ...options });
  const rejected: [Promise<unknown>, RegExp][] = [
    [enqueueInputs('a', 1 as never, { connection: NOWHERE }), /inputs must be an array/],
    [enqueueInputs('a', [1]), /^The queue needs Redis: set REDIS_URL/],
    [work({ retries: 2 }), /workPooledBrowsers has no option retries\./],
    [work({ name: 'a'.repeat(245) }), /^name must be /],
    [work({}, ''), /^pool must not be empty/],
  ];
  for (const [call, message] of rejected) await expect(call).rejects.toThrow(message);
});
