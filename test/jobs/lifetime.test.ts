import { describe, expect } from 'vitest';
import { LeaseExpiredError } from '../../src/index.js';
import { useJumpingClock } from '../support/fake-clock.js';
import { it } from './it.js';

const never = () => new Promise<never>(() => {});

describe('mapPooledBrowsers with lifetime', () => {
  it('fails the task that runs at the end of its lease, and goes on with another browser', async ({
    bench,
  }) => {
    const jump = useJumpingClock();
    const task = ({ input }: { input: string }) => {
      if (input === 'next') return input;
      jump(600_000);
      return never();
    };
    const outcomes = await bench.run(['slow', 'next'], task, { concurrency: 1, lifetime: 600_000 });
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: expect.any(LeaseExpiredError), sessionId: 's1' },
      { status: 'fulfilled', value: 'next', sessionId: 's2' },
    ]);
    expect([...bench.released]).toEqual([
      ['s1', 'destroyed'],
      ['s2', 'reused'],
    ]);
  });

  it('runs the task again in another browser with retries', async ({ bench }) => {
    const jump = useJumpingClock();
    const task = ({ attempt }: { attempt: number }) => {
      if (attempt === 2) return 'done';
      jump(600_000);
      return never();
    };
    const outcomes = await bench.run([1], task, { concurrency: 1, lifetime: 600_000, retries: 1 });
    expect(outcomes).toMatchObject([{ status: 'fulfilled', value: 'done', attempts: 2, sessionId: 's2' }]);
  });

  it('gives each task extend, which moves the end of its lease', async ({ bench }) => {
    const jump = useJumpingClock();
    const task = ({ extend, signal }: { extend: (ms: number) => number; signal: AbortSignal }) => {
      const remaining = extend(60_000);
      jump(610_000);
      return [remaining, signal.aborted];
    };
    const outcomes = await bench.run([1], task, { lifetime: 600_000 });
    expect(outcomes).toMatchObject([{ status: 'fulfilled', value: [660_000, false] }]);
  });

  it('ends if no lease lasts until a task begins', async ({ bench }) => {
    bench.openPage = never;
    const running = bench.run([1], () => 'done', { concurrency: 1, lifetime: 50 });
    await expect(running).rejects.toThrow(LeaseExpiredError);
    expect(bench.leased).toBe(0);
  });
});
