import { expect, vi } from 'vitest';
import { startProgram, variablesOf, type Program } from '../../support/program.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { it } from '../it.js';
import { range, type MapBench } from '../support.js';
import { TestQueue } from './support.js';

describeWithRedis('a worker that is killed (SIGKILL)', () => {
  const used = useRedis();

  /** Starts a worker whose tasks take `duration`. All times are in ms. */
  function startWorker(
    bench: MapBench,
    queue: TestQueue,
    duration: number,
    locks: [lock: number, stalls: number],
  ): Program {
    vi.stubEnv('REDIS_URL', used.redis.url);
    const args = ['test/jobs/queue/programs/worker.mjs', queue.name, ...[duration, ...locks].map(String)];
    return startProgram(args, variablesOf(bench.service.options));
  }

  it('loses no input and no browser', async ({ bench }) => {
    bench.size = 8;
    const queue = new TestQueue('killed', used.redis.url);
    await queue.add(range(60));
    // A busy worker loses a short lock while it lives, any number of times.
    const start = (duration: number) => startWorker(bench, queue, duration, [1000, 1000]);
    // It ends no task before it is killed.
    const killed = start(600_000);
    await killed.prints(/began/);
    const others = [start(200)];
    await others[0]!.prints(/began/);
    await killed.end('SIGKILL');
    others.push(start(200));
    const outcomes = await queue.collect();
    expect(outcomes.map(({ index }) => index)).toEqual(range(60));
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true);
    const errors: string[] = [];
    for (const worker of others) {
      await worker.prints(/ready/);
      const { stdout, stderr } = await worker.end('SIGTERM');
      expect(stdout).toContain('"failed":0');
      errors.push(stderr);
    }
    expect(errors.join('')).toMatch(
      /A worker of the queue killed that had input \d+ \(\d+\) was killed or has lost Redis/,
    );
    await expect.poll(() => bench.leased).toBe(0);
  });

  it('more often with an input than maxStalledCount allows makes this input fail', async ({ bench }) => {
    const queue = new TestQueue('poison', used.redis.url);
    await queue.add(['poison']);
    const collected = queue.collect();
    // The lock never expires: a busy worker would lose a short one while it lives.
    const start = (duration: number) => startWorker(bench, queue, duration, [600_000, 1]);
    for (let kill = 0; kill < 2; kill++) {
      const worker = start(600_000);
      await worker.prints(/began poison/);
      await worker.end('SIGKILL');
      await expireLock();
    }
    const last = start(0);
    const reason = { message: 'job stalled more than allowable limit' };
    expect(await collected).toMatchObject([{ status: 'rejected', input: 'poison', reason }]);
    expect((await last.end('SIGTERM')).stdout).toBe('ready\n{"succeeded":0,"failed":0}\n');
  });

  /** Ends the only lock of the queue at once. */
  async function expireLock(): Promise<void> {
    const client = await used.redis.connect();
    const locks = await client.keys('bull:poison:*:lock');
    expect(locks).toHaveLength(1);
    await client.del(...locks);
    client.disconnect();
  }
});
