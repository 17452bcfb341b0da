import { expect, it, vi } from 'vitest';
import { enqueueInputs } from '../../../src/bullmq.js';
import { startClient, type Program } from '../../cli/support.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { MapBench, range } from '../support.js';
import { collectAll } from './support.js';

describeWithRedis('a worker that is killed (SIGKILL)', () => {
  const used = useRedis();

  interface WorkerOptions {
    /** Duration of each task in ms. */
    duration: number;
    lockDuration?: number;
    maxStalledCount?: number;
  }

  function startWorker(
    bench: MapBench,
    queueName: string,
    { duration, lockDuration = 1000, maxStalledCount = 5 }: WorkerOptions,
  ): Program {
    vi.stubEnv('REDIS_URL', used.redis.url);
    const numbers = [duration, lockDuration, maxStalledCount].map(String);
    const args = ['test/map/queue/programs/worker.mjs', queueName, ...numbers];
    return startClient(args, bench.service.options, { command: process.execPath });
  }

  it('loses no input and no browser', async () => {
    await using bench = await MapBench.start(8);
    await enqueueInputs('killed', range(60), { connection: used.redis.url });
    // A busy worker loses a short lock while it lives, any number of times.
    const start = (duration: number) => startWorker(bench, 'killed', { duration, maxStalledCount: 1000 });
    // It ends no task before it is killed.
    const killed = start(600_000);
    await killed.prints(/began/);
    const others = [start(200)];
    await others[0]!.prints(/began/);
    await killed.end('SIGKILL');
    others.push(start(200));
    const outcomes = await collectAll('killed', used.redis.url);
    expect(outcomes.map(({ index }) => index)).toEqual(range(60));
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true);
    for (const worker of others) {
      await worker.prints(/ready/);
      expect((await worker.end('SIGTERM')).stdout).toContain('"failed":0');
    }
    await expect.poll(() => bench.leased).toBe(0);
  });

  it('as often with the same input as maxStalledCount allows, and once more, makes this input fail', async () => {
    await using bench = await MapBench.start(8);
    await enqueueInputs('poison', ['poison'], { connection: used.redis.url });
    const collected = collectAll('poison', used.redis.url);
    // So long that it never expires: a busy worker would lose a short one while it lives.
    const locks = { lockDuration: 600_000, maxStalledCount: 1 };
    for (let kill = 0; kill < 2; kill++) {
      const worker = startWorker(bench, 'poison', { duration: 600_000, ...locks });
      await worker.prints(/began poison/);
      await worker.end('SIGKILL');
      await expireLock('poison');
    }
    const last = startWorker(bench, 'poison', { duration: 0, ...locks });
    const reason = { message: 'job stalled more than allowable limit' };
    expect(await collected).toMatchObject([{ status: 'rejected', input: 'poison', reason }]);
    expect((await last.end('SIGTERM')).stdout).toBe('ready\n{"done":0,"failed":0}\n');
  });

  /** Ends the only lock of a queue at once. */
  async function expireLock(queueName: string): Promise<void> {
    const client = await used.redis.connect();
    const locks = await client.keys(`bull:${queueName}:*:lock`);
    expect(locks).toHaveLength(1);
    await client.del(...locks);
    client.disconnect();
  }
});
