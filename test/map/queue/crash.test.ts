import { expect, it, vi } from 'vitest';
import { enqueueInputs } from '../../../src/bullmq.js';
import { startClient, type Program } from '../../cli/support.js';
import { describeWithRedis, useRedis } from '../../support/redis.js';
import { MapBench, range } from '../support.js';
import { collectAll } from './support.js';

describeWithRedis('a worker that is killed (SIGKILL)', () => {
  const used = useRedis();

  function startWorker(bench: MapBench, queueName: string, duration: number, maxStalledCount = 5): Program {
    vi.stubEnv('REDIS_URL', used.redis.url);
    const args = ['test/map/queue/programs/worker.mjs', queueName, `${duration}`, `${maxStalledCount}`];
    return startClient(args, bench.service.options, { command: process.execPath });
  }

  it('loses no input and no browser', async () => {
    await using bench = await MapBench.start(8);
    await enqueueInputs('killed', range(60), { connection: used.redis.url });
    const workers = Array.from({ length: 2 }, () => startWorker(bench, 'killed', 200));
    const collected = collectAll('killed', used.redis.url);
    await workers[0]!.prints(/began/);
    await workers[0]!.end('SIGKILL');
    const killed = workers[0]!.child.pid;
    workers.push(startWorker(bench, 'killed', 200));
    const outcomes = await collected;
    expect(outcomes.map(({ index }) => index)).toEqual(range(60));
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(outcomes.some((outcome) => 'value' in outcome && outcome.value === killed)).toBe(false);
    for (const worker of workers.slice(1))
      expect((await worker.end('SIGTERM')).stdout).toContain('"failed":0');
    await expect.poll(() => bench.leased).toBe(0);
  });

  it('as often with the same input as maxStalledCount allows, and once more, makes this input fail', async () => {
    await using bench = await MapBench.start(8);
    await enqueueInputs('poison', ['poison'], { connection: used.redis.url });
    const collected = collectAll('poison', used.redis.url);
    for (let kill = 0; kill < 2; kill++) {
      const worker = startWorker(bench, 'poison', 100_000, 1);
      await worker.prints(/began poison/);
      await worker.end('SIGKILL');
    }
    const last = startWorker(bench, 'poison', 0, 1);
    // On a busy machine, the second worker's own lock may expire, so that the input fails before this worker has started.
    await last.prints(/ready/);
    const reason = { message: 'job stalled more than allowable limit' };
    expect(await collected).toMatchObject([{ status: 'rejected', input: 'poison', reason }]);
    expect((await last.end('SIGTERM')).stdout).toBe('ready\n{"done":0,"failed":0}\n');
  });
});
