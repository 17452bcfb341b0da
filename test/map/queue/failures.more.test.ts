import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { collectOutcomes, enqueueInputs, workPooledBrowsers } from '../../../src/bullmq.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { TestRedis } from '../../support/redis-server.js';
import { gate, MapBench, range } from '../support.js';
import { collectAll, TestWorker } from './support.js';

/** Nothing listens here. */
const NOWHERE = 'redis://127.0.0.1:2';

describeWithRedis('Redis', () => {
  it('may restart while workers run: every input has one outcome', async () => {
    await using redis = await TestRedis.start();
    const connection = { connection: redis.url };
    await using bench = await MapBench.start();
    await enqueueInputs('restart', range(60), connection);
    const reached = gate();
    const task = ({ index }: { index: number }) => void (index === 20 && reached.open());
    // An input that Redis assigned, but whose answer was lost, is locked for this time.
    const locks = { lockDuration: 1000, stalledInterval: 300 };
    await using worker = new TestWorker(bench, 'restart', task, { ...connection, ...locks });
    const collected = collectAll('restart', redis.url);
    await reached.promise;
    await redis.end();
    await redis.begin();
    expect((await collected).map(({ index }) => index)).toEqual(range(60));
    await worker.end();
  });

  it('that is killed and comes back soon is waited for', async () => {
    await using redis = await TestRedis.start();
    const connection = { connection: redis.url };
    await using bench = await MapBench.start();
    await enqueueInputs('killed', range(4), connection);
    const open = gate();
    await using worker = new TestWorker(bench, 'killed', () => open.promise, connection);
    await expect.poll(() => bench.leased).toBe(4);
    await redis.end('SIGKILL');
    open.open();
    await redis.begin();
    expect(await collectAll('killed', redis.url)).toHaveLength(4);
    expect(await worker.end()).toEqual({ done: 4, failed: 0 });
  });

  it('that is gone ends the worker and the collector with what to do, and releases the browsers', async () => {
    await using redis = await TestRedis.start();
    const connection = { connection: redis.url, redisTimeout: 5_000 };
    await using bench = await MapBench.start();
    await enqueueInputs('gone', range(4), connection);
    const open = gate();
    await using worker = new TestWorker(bench, 'gone', () => open.promise, connection);
    const collected = collectOutcomes('gone', connection).next();
    collected.catch(() => {});
    await expect.poll(() => bench.leased).toBe(4);
    await redis.end();
    const error = { name: 'QueueError', code: 'ERR_QUEUE', message: expect.stringMatching(GONE) as string };
    await expect(collected).rejects.toMatchObject(error);
    open.open();
    await expect(worker.ended).rejects.toMatchObject(error);
    expect(bench.leased).toBe(0);
  });

  it('that does not exist is an error with what to do', async () => {
    const options = { connection: NOWHERE, redisTimeout: 4_000 };
    await using bench = await MapBench.start();
    await using worker = new TestWorker(bench, 'none', () => {}, options);
    const calls = [
      enqueueInputs('none', [1], options),
      collectOutcomes('none', options).next(),
      worker.ended,
    ];
    await Promise.all(calls.map((call) => expect(call).rejects.toThrow(UNREACHABLE)));
  });
});

const GONE =
  /^Redis at 127\.0\.0\.1:\d+ has been unreachable for 5 s: .+\. The inputs and results in it are kept if it stores them \(appendonly yes\)\. Start Redis, then start this program again\.$/;
const UNREACHABLE =
  /^Redis at 127\.0\.0\.1:2 could not be reached within 4 s: .*ECONNREFUSED.*\. Start Redis, or set REDIS_URL \(or the option connection\) to its address\.$/;

describeWithRedis('a password', () => {
  const PASSWORD = 'canary-password-123';

  it('is in no error', async () => {
    await using redis = await TestRedis.start({ password: PASSWORD });
    const wrong = redis.url.replace(PASSWORD, `wrong-${PASSWORD}`);
    const { port } = redis;
    const without = { host: '127.0.0.1', port };
    const other = { ...without, password: `other-${PASSWORD}` };
    for (const connection of [wrong, without, other, redis.url.replace('redis:', 'rediss:')]) {
      const options = { connection, redisTimeout: 500 };
      const error: unknown = await enqueueInputs('secret', [1], options).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        name: 'QueueError',
        message: expect.stringMatching(/^Redis at 127\.0\.0\.1:/) as string,
      });
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(PASSWORD);
      expect(JSON.stringify(error)).not.toContain(PASSWORD);
    }
  });

  it('is in no result, if a task throws it', async () => {
    await using redis = await TestRedis.start({ password: PASSWORD });
    const connection = { connection: redis.url };
    await using bench = await MapBench.start();
    await enqueueInputs('thrown', [1], connection);
    const task = () => {
      throw new Error(`${redis.url} ${PASSWORD}`);
    };
    await using worker = new TestWorker(bench, 'thrown', task, connection);
    const [outcome] = await collectAll('thrown', redis.url);
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
  const connection = () => ({ connection: used.redis.url });

  it('that stops early leaves the other outcomes, and the last one again, to the next collector', async () => {
    await using bench = await MapBench.start();
    await enqueueInputs('early', range(30), connection());
    await using worker = new TestWorker(bench, 'early', ({ input }) => input, connection());
    const first: number[] = [];
    for await (const { index } of collectOutcomes('early', connection())) {
      first.push(index);
      if (first.length === 10) break;
    }
    const rest = await collectAll('early', used.redis.url);
    expect(rest.map(({ index }) => index)).toContain(first.at(-1));
    expect([...first.slice(0, -1), ...rest.map(({ index }) => index)].toSorted((a, b) => a - b)).toEqual(
      range(30),
    );
    await worker.end();
  });

  it('is the only one of its queue', async () => {
    await enqueueInputs('alone', [1], connection());
    const abort = new AbortController();
    const first = collectOutcomes('alone', { ...connection(), signal: abort.signal });
    const waiting = first.next();
    waiting.catch(() => {});
    const client = await used.redis.connect();
    await expect.poll(() => client.exists('bull:alone:pooled-browser:collector')).toBe(1);
    await expect(collectOutcomes('alone', connection()).next()).rejects.toThrow(
      /^The outcomes of the queue alone are collected by process \d+ on .+\. Two collectors would/,
    );
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(await client.exists('bull:alone:pooled-browser:collector')).toBe(0);
    client.disconnect();
  });
});

it('checks its options before it connects', async () => {
  expect(() => collectOutcomes('a:b')).toThrow('queueName must be a name without a colon.');
  expect(() => collectOutcomes('a', { totl: 1 } as object)).toThrow('Did you mean total?');
  await expect(enqueueInputs('a', 1 as never, { connection: NOWHERE })).rejects.toThrow(
    'inputs must be an array',
  );
  await expect(enqueueInputs('a', [1])).rejects.toThrow(/^The queue needs Redis: set REDIS_URL/);
  await using bench = await MapBench.start();
  const { connector } = bench;
  const options = { connector, retries: 2 } as never;
  await expect(workPooledBrowsers('a', bench.pool, () => 1, options)).rejects.toThrow(
    'workPooledBrowsers has no option retries.',
  );
});
