import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { AcquireTimeoutError, type RunEvent } from '../../src/index.js';
import { it } from './it.js';
import { counted, gate, range } from './support.js';

/** Tasks that never end, except the first. */
function endless() {
  const signals: AbortSignal[] = [];
  const task = ({ input, signal }: { input: number; signal: AbortSignal }) => {
    signals.push(signal);
    return input === 0 ? undefined : new Promise<never>(() => {});
  };
  return { signals, task };
}

/** Inputs of which the second one never comes. */
async function* oneInput() {
  yield 1;
  await new Promise(() => {});
}

describe('leaving the loop', () => {
  it('ends the tasks, releases every browser and closes the inputs before the next line runs', async ({
    bench,
  }) => {
    const source = counted(100);
    const { signals, task } = endless();
    for await (const { index } of bench.map(source.inputs, task, { concurrency: 3 })) {
      expect(index).toBe(0);
      await expect.poll(() => signals.length).toBe(4);
      break;
    }
    expect(signals.slice(1).map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect([bench.granted.length, bench.leased, source.closed]).toEqual([3, 0, 1]);
  });

  it('throws the error of the loop body', async ({ bench }) => {
    const source = counted(100);
    const error = new Error('of the body');
    const loop = async () => {
      for await (const { status } of bench.map(source.inputs, () => sleep(5))) if (status) throw error;
    };
    await expect(loop()).rejects.toBe(error);
    expect(source.closed).toBe(1);
    // A browser that is granted only now is released in the background.
    await expect.poll(() => bench.leased).toBe(0);
  });

  it('releases an idle browser for reuse, and a working one for destruction', async ({ bench }) => {
    const [begun, hang] = [gate(), gate()];
    async function* inputs() {
      yield 0;
      yield 1;
      await hang.promise;
    }
    const task = async ({ input }: { input: number }) => {
      if (input === 1) return;
      begun.open();
      await hang.promise;
    };
    const outcomes = bench.map(inputs(), task);
    const { value } = await outcomes.next();
    await begun.promise;
    // The lane opens the page of its next task.
    await sleep(50);
    await outcomes.return!();
    const idle = value!.session.session_id;
    const ends = ['s1', 's2'].map((id) => [id, id === idle ? 'reused' : 'destroyed'] as const);
    expect(bench.released).toEqual(new Map(ends));
  });

  it('settles a pending next()', async ({ bench }) => {
    const started = gate();
    const outcomes = bench.map([1], () => (started.open(), new Promise(() => {})));
    const next = outcomes.next();
    await started.promise;
    await outcomes.return!();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(bench.leased).toBe(0);
  });

  it('ends the iteration for good, also if the inputs have thrown', async ({ bench }) => {
    const inputs = function* () {
      yield 1;
      throw new Error('of the inputs');
    };
    const outcomes = bench.map(inputs(), () => {}, { concurrency: 1 });
    await outcomes.next();
    await outcomes.return!();
    expect(await outcomes.next()).toEqual({ done: true, value: undefined });
  });

  it('happens at the end of an await using block, whose next input never comes', async ({ bench }) => {
    {
      await using outcomes = bench.map(oneInput(), () => sleep(1));
      await outcomes.next();
    }
    expect(bench.leased).toBe(0);
  });
});

describe('an abort of the signal', () => {
  it('ends the running tasks, releases every browser, and throws the reason', async ({ bench }) => {
    const source = counted(100);
    const { signals, task } = endless();
    const controller = new AbortController();
    const reason = new Error('enough');
    const outcomes = bench.run(source.inputs, task, { concurrency: 2, signal: controller.signal });
    await expect.poll(() => signals.length).toBe(3);
    controller.abort(reason);
    await expect(outcomes).rejects.toBe(reason);
    expect(signals.slice(1).map((signal) => signal.reason as unknown)).toEqual([reason, reason]);
    expect([bench.leased, source.closed]).toEqual([0, 1]);
  });

  it('leases and pulls nothing when the signal has aborted before', async ({ bench }) => {
    const source = counted(3);
    const outcomes = bench.run(source.inputs, () => {}, { signal: AbortSignal.abort(new Error('before')) });
    await expect(outcomes).rejects.toThrow('before');
    expect([source.pulled, bench.service.requests.length]).toEqual([0, 0]);
  });

  it('ends the wait for a browser', async ({ bench }) => {
    bench.size = 0;
    const controller = new AbortController();
    const outcomes = bench.run([1], () => {}, { signal: controller.signal });
    await expect.poll(() => bench.service.of('acquire').length).toBe(1);
    controller.abort(new Error('enough'));
    await expect(outcomes).rejects.toThrow('enough');
  });
});

it('inputs that throw end the loop with their error, after the running tasks have their outcomes', async ({
  bench,
}) => {
  const error = new Error('of the inputs');
  const inputs = function* () {
    yield 0;
    yield 1;
    throw error;
  };
  const seen: number[] = [];
  const loop = async () => {
    for await (const { index } of bench.map(inputs(), () => sleep(50))) seen.push(index);
  };
  await expect(loop()).rejects.toBe(error);
  expect(new Set(seen)).toEqual(new Set([0, 1]));
  expect(bench.leased).toBe(0);
});

describe('a service that grants no browser', () => {
  it('ends the loop immediately with PoolServiceError if it refuses', async ({ bench }) => {
    bench.service.script('acquire', { status: 403, json: { code: 'refused', message: 'no' } });
    const source = counted(100);
    const outcomes = bench.run(source.inputs, () => {}, { concurrency: 1 });
    await expect(outcomes).rejects.toMatchObject({ status: 403, code: 'refused' });
    expect(bench.service.of('acquire')).toHaveLength(1);
    expect(source).toMatchObject({ pulled: 1, closed: 1 });
  });

  it('ends the loop with AcquireTimeoutError when no browser becomes available', async ({ bench }) => {
    bench.size = 0;
    const outcomes = bench.run(range(10), () => {}, { acquireTimeout: 300 });
    await expect(outcomes).rejects.toBeInstanceOf(AcquireTimeoutError);
  });

  it('continues with the available browsers in a pool smaller than the concurrency', async ({ bench }) => {
    bench.size = 2;
    // The first two tasks end when one of the other six workers has waited in vain.
    const timedOut = gate();
    const onEvent = (event: RunEvent) => {
      if (event.type === 'ended' && event.error instanceof AcquireTimeoutError) timedOut.open();
    };
    const task = ({ input }: { input: number }) => (input < 2 ? timedOut.promise : sleep(20));
    const options = { concurrency: 8, acquireTimeout: 5000, tasksPerLease: 10, onEvent };
    const outcomes = await bench.run(range(60), task, options);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(60);
    expect(bench.mostLeased).toBe(2);
    // A browser that was granted after its worker had stopped is released in the background.
    await expect.poll(() => bench.leased).toBe(0);
  });

  it('ends the loop with ConnectError when no browser is usable', async ({ bench }) => {
    bench.openPage = () => Promise.reject(new Error('no page'));
    const outcomes = bench.run(range(10), () => {}, { concurrency: 1 });
    await expect(outcomes).rejects.toMatchObject({ code: 'ERR_CONNECT', cause: { message: 'no page' } });
    expect(bench.granted).toHaveLength(3);
    expect([...bench.released.values()]).toEqual(['destroyed', 'destroyed', 'destroyed']);
  });
});
