import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BrowserLostError, TaskTimeoutError } from '../../src/index.js';
import { collect, MapBench, range } from './support.js';

it('yields a failed task as an outcome with its unchanged error, after one attempt by default', async () => {
  await using bench = await MapBench.start();
  const error = new Error('of the task');
  const task = ({ input }: { input: number }) => {
    if (input === 1) throw error;
  };
  const outcomes = await collect(bench.map([0, 1, 2], task, { ordered: true }));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: error, attempts: 1, index: 1, input: 1 });
});

it('retries a failed task as often as retries allows', async () => {
  await using bench = await MapBench.start();
  const seen: [number, number][] = [];
  const task = ({ input, attempt }: { input: number; attempt: number }) => {
    seen.push([input, attempt]);
    if (input === 0 || attempt < 3) throw new Error(`attempt ${attempt}`);
    return attempt;
  };
  const outcomes = await collect(bench.map([0, 1], task, { retries: 2, ordered: true }));
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { message: 'attempt 3' }, attempts: 3 },
    { status: 'fulfilled', value: 3, attempts: 3 },
  ]);
  expect(seen.filter(([input]) => input === 0)).toEqual([1, 2, 3].map((attempt) => [0, attempt]));
});

it('lets many tasks wait for their retries without a warning about a listener leak', async () => {
  await using bench = await MapBench.start();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const task = ({ attempt }: { attempt: number }) => {
    if (attempt === 1) throw new Error('of the first attempt');
  };
  const retry = { minTimeout: 200, randomize: false };
  const outcomes = await collect(bench.map(range(15), task, { pagesPerLease: 5, retries: 1, retry }));
  expect(outcomes.map(({ attempts }) => attempts)).toEqual(range(15).map(() => 2));
  expect(warnings).toEqual([]);
});

describe('taskTimeout', () => {
  it('aborts the signal, closes the page, and gives the next task another page', async () => {
    await using bench = await MapBench.start();
    let signal: AbortSignal | undefined;
    const pages: { id: number; isClosed: boolean }[] = [];
    const outcomes = await collect(
      bench.map(
        [0, 1],
        (task) => {
          pages.push(task.page);
          if (task.input === 1) return 'done';
          signal = task.signal;
          return new Promise<never>(() => {});
        },
        { taskTimeout: 100, concurrency: 1, isolation: 'none', ordered: true },
      ),
    );
    const reason = (outcomes[0] as { reason?: unknown }).reason;
    expect(reason).toBeInstanceOf(TaskTimeoutError);
    expect(reason).toMatchObject({ code: 'ERR_TASK_TIMEOUT', timeout: 100, sessionId: 's1' });
    expect(signal?.reason).toBe(reason);
    expect(outcomes[1]).toMatchObject({ status: 'fulfilled', value: 'done' });
    expect(pages).toMatchObject([{ isClosed: true }, { isClosed: false }]);
    expect(bench.granted).toHaveLength(1);
  });
});

describe('when a browser is lost', () => {
  it('the running task fails with BrowserLostError, and the job continues on another browser', async () => {
    await using bench = await MapBench.start();
    const outcomes = await collect(
      bench.map(
        range(3),
        async ({ input, session }) => {
          if (input !== 1) return;
          bench.lose(session.session_id);
          await new Promise(() => {});
        },
        { concurrency: 1, ordered: true },
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((outcomes[1] as { reason?: unknown }).reason).toBeInstanceOf(BrowserLostError);
    expect([...bench.released]).toEqual([
      ['s1', 'destroyed'],
      ['s2', 'reused'],
    ]);
  });

  it('the task is retried on another browser', async () => {
    await using bench = await MapBench.start();
    const sessions: string[] = [];
    const [outcome] = await collect(
      bench.map(
        [0],
        async ({ session, attempt }) => {
          sessions.push(session.session_id);
          if (attempt > 1) return 'done';
          bench.lose(session.session_id);
          return new Promise<never>(() => {});
        },
        { retries: 1 },
      ),
    );
    expect(outcome).toMatchObject({ status: 'fulfilled', value: 'done', attempts: 2 });
    expect(sessions).toEqual(['s1', 's2']);
  });

  it('no attempt is counted if no task was running', async () => {
    await using bench = await MapBench.start();
    async function* inputs() {
      yield 0;
      await expect.poll(() => bench.granted.length).toBe(1);
      await sleep(50);
      bench.lose('s1');
      await expect.poll(() => bench.released.size).toBe(1);
      yield 1;
    }
    const outcomes = await collect(bench.map(inputs(), ({ session }) => session.session_id));
    expect(outcomes).toMatchObject([
      { value: 's1', attempts: 1 },
      { value: 's2', attempts: 1 },
    ]);
  });
});

it('destroys a browser that opens no page, and runs the task on another browser as its first attempt', async () => {
  await using bench = await MapBench.start();
  let opened = 0;
  bench.openPage = async () => {
    if (++opened === 2) throw new Error('no page');
  };
  const outcomes = await collect(bench.map(range(4), ({ attempt }) => attempt, { concurrency: 1 }));
  expect(outcomes.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
  expect([...bench.released.values()]).toEqual(['destroyed', 'reused']);
});

describe('recycling', () => {
  it('releases a browser after tasksPerLease tasks and leases another', async () => {
    await using bench = await MapBench.start(1);
    const outcomes = await collect(
      bench.map(range(7), ({ session }) => session.session_id, { tasksPerLease: 3, ordered: true }),
    );
    expect(outcomes.map((outcome) => 'value' in outcome && outcome.value)).toEqual([
      's1',
      's1',
      's1',
      's2',
      's2',
      's2',
      's3',
    ]);
    expect([...bench.released.values()]).toEqual(['reused', 'reused', 'reused']);
  });

  it('counts the tasks of all pages of a browser', async () => {
    await using bench = await MapBench.start();
    const tasks = new Map<string, number>();
    const task = async ({ session: { session_id: id } }: { session: { session_id: string } }) => {
      tasks.set(id, (tasks.get(id) ?? 0) + 1);
      await sleep(5);
    };
    await collect(bench.map(range(20), task, { concurrency: 1, pagesPerLease: 3, tasksPerLease: 4 }));
    expect([...tasks.values()]).toEqual([4, 4, 4, 4, 4]);
  });

  it('releases a browser at maxLeaseAge, after its task has ended', async () => {
    await using bench = await MapBench.start();
    const outcomes = await collect(
      bench.map(range(3), () => sleep(150), { concurrency: 1, maxLeaseAge: 100 }),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect([...bench.released.values()]).toEqual(['reused', 'reused', 'reused']);
  });
});
