import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished } from 'vitest';
import {
  BrowserLostError,
  TaskTimeoutError,
  TooManyFailuresError,
  readCheckpoint,
  type AttemptFacts,
  type RunEvent,
} from '../../src/index.js';
import { reply } from '../support/fake-service.js';
import { it, warningsOfTest } from './it.js';
import { gate, range, valuesOf, type MapBench } from './support.js';

interface Leased {
  session: { session_id: string };
}

it.for([
  [Number.POSITIVE_INFINITY, 1],
  [2 ** 31, 1],
  [Number.NaN, 2],
  [-1, 2],
  [0, 2],
  ['30', 2],
  [undefined, 2],
])(
  'a retryAfter of %j in the error of a task allows %i attempts, and delays no other task',
  async (row, { bench }) => {
    const [retryAfter, attempts] = row;
    const task = () => Promise.reject(Object.assign(new Error('busy'), { retryAfter }));
    const outcomes = bench.run(['http://a/1', 'http://a/2'], task, {
      retries: 1,
      shouldRetry: () => true,
      concurrency: 1,
    });
    expect((await outcomes).map((outcome) => outcome.attempts)).toEqual([attempts, attempts]);
  },
);

it('yields a failed task as an outcome with its error, after one attempt by default', async ({ bench }) => {
  const error = new Error('of the task');
  const task = ({ input }: { input: number }) => (input === 1 ? Promise.reject(error) : input);
  expect(await bench.run([0, 1, 2], task, { ordered: true })).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: error, attempts: 1, index: 1, input: 1 },
    { status: 'fulfilled' },
  ]);
});

describe('what a task throws', () => {
  const fails = () => {
    throw new Error('of the value');
  };
  const TRAPS = {
    get: fails,
    has: fails,
    getPrototypeOf: fails,
    ownKeys: fails,
    getOwnPropertyDescriptor: fails,
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const circular = new Error('circular');
  circular.cause = circular;
  const aggregate = (message?: string) =>
    new AggregateError([new Error('first'), new Error('second')], message);
  const huge = new Error('x'.repeat(1_000_000));

  it.for<[what: string, reason: unknown, stored: object]>([
    ['undefined', undefined, { message: 'undefined' }],
    ['a text', 'text', { message: 'text' }],
    ['a symbol', Symbol('of a task'), { message: 'Symbol(of a task)' }],
    ['a bigint', 10n, { message: '10n' }],
    ['a function', fails, { message: '[Function: fails]' }],
    ['an object without toString', Object.create(null), { message: '[Object: null prototype] {}' }],
    ['an object whose toString throws', { toString: fails }, { message: '{ toString: [Function: fails] }' }],
    ['a proxy whose traps throw', new Proxy({ a: 1 }, TRAPS), { message: '{ a: 1 }' }],
    ['a revoked proxy', revoked.proxy, { message: '<Revoked Proxy>' }],
    [
      'an object with message and code',
      { message: 'busy', code: 'E_BUSY' },
      { message: 'busy', code: 'E_BUSY' },
    ],
    ['an object with other facts', { status: 404, errors: [] }, { message: '{ status: 404, errors: [] }' }],
    ['a frozen error', Object.freeze(new RangeError('cold')), { name: 'RangeError', message: 'cold' }],
    ['an error that is its own cause', circular, { name: 'Error', message: 'circular' }],
    ['an error whose name is no text', Object.assign(new Error('odd'), { name: 7 }), { message: 'odd' }],
    ['several errors', aggregate('both'), { name: 'AggregateError', message: 'both' }],
    ['several errors without a message', aggregate(), { name: 'AggregateError', message: 'first; second' }],
    [
      'an error that cannot be read',
      Object.defineProperty(new Error('hidden'), 'message', { get: fails }),
      { message: 'a value that cannot be shown' },
    ],
    ['an error with a huge message', huge, { name: 'Error', message: `${'x'.repeat(10_000)}…` }],
  ])(
    '%s is the reason of its outcome, unchanged, and is stored as text',
    async ([what, reason, stored], { bench }) => {
      const checkpoint = join(tmpdir(), `thrown-${what}.jsonl`);
      onTestFinished(() => rm(checkpoint));
      const task = ({ input }: { input: string }) => {
        if (input === 'bad') throw reason;
      };
      const outcomes = await bench.run(['bad', 'good'], task, { checkpoint, retries: 1, ordered: true });
      expect(outcomes.map(({ status, attempts }) => [status, attempts])).toEqual([
        ['rejected', 2],
        ['fulfilled', 1],
      ]);
      expect(Object.is((outcomes[0] as { reason: unknown }).reason, reason)).toBe(true);
      for await (const record of readCheckpoint(checkpoint))
        if (record.status === 'rejected') expect(record.reason).toEqual(stored);
    },
  );
});

it('retries a failed task as often as retries allows', async ({ bench }) => {
  const seen: [number, number][] = [];
  const task = ({ input, attempt }: { input: number; attempt: number }) => {
    seen.push([input, attempt]);
    if (input === 0 || attempt < 3) throw new Error(`attempt ${attempt}`);
    return attempt;
  };
  expect(await bench.run([0, 1], task, { retries: 2, ordered: true })).toMatchObject([
    { status: 'rejected', reason: { message: 'attempt 3' }, attempts: 3 },
    { status: 'fulfilled', value: 3, attempts: 3 },
  ]);
  expect(seen.filter(([input]) => input === 0)).toEqual([1, 2, 3].map((attempt) => [0, attempt]));
});

describe('without a warning about a listener leak', () => {
  it.for<[what: string, (bench: MapBench) => Promise<unknown>]>([
    [
      'many tasks wait for their retries',
      async (bench) => {
        const task = ({ attempt }: { attempt: number }) => {
          if (attempt === 1) throw new Error('of the first attempt');
        };
        const retry = { minTimeout: 200, randomize: false };
        const outcomes = await bench.run(range(15), task, { pagesPerLease: 5, retries: 1, retry });
        expect(outcomes.map(({ attempts }) => attempts)).toEqual(range(15).map(() => 2));
      },
    ],
    [
      'many browsers fail at once',
      async (bench) => {
        let opened = 0;
        bench.openPage = async () => {
          if (++opened <= 15) throw new Error('no page');
        };
        const retry = { minTimeout: 200, randomize: false };
        expect(await bench.run(range(15), () => sleep(50), { concurrency: 15, retry })).toHaveLength(15);
      },
    ],
    [
      'many jobs share a signal',
      async (bench) => {
        const { signal } = new AbortController();
        await Promise.all(range(15).map(() => bench.run([1], () => sleep(50), { signal })));
      },
    ],
  ])('%s', async ([, run], { bench }) => {
    const warnings = warningsOfTest();
    await run(bench);
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([]);
  });
});

describe('shouldRetry', () => {
  const fail = ({ input }: { input: string }) => {
    throw new Error(input);
  };

  it('decides whether a failed task is retried, by its error and attempt, if there are retries', async ({
    bench,
  }) => {
    const asked: [string, AttemptFacts][] = [];
    const shouldRetry = async (error: unknown, attempt: AttemptFacts) => {
      asked.push([(error as Error).message, attempt]);
      await sleep(1);
      return (error as Error).message === 'busy';
    };
    const options = { retries: 2, shouldRetry, concurrency: 1, ordered: true };
    expect(await bench.run(['gone', 'busy'], fail, options)).toMatchObject([
      { input: 'gone', attempts: 1 },
      { input: 'busy', attempts: 3 },
    ]);
    await bench.run(['not asked'], fail, { shouldRetry });
    expect(asked).toEqual([
      ['gone', { input: 'gone', index: 0, attempt: 1 }],
      ['busy', { input: 'busy', index: 1, attempt: 1 }],
      ['busy', { input: 'busy', index: 1, attempt: 2 }],
    ]);
  });

  it('ends the job with the error that it throws', async ({ bench }) => {
    const error = new Error('of shouldRetry');
    const shouldRetry = () => {
      throw error;
    };
    await expect(bench.run(['a'], fail, { retries: 1, shouldRetry })).rejects.toBe(error);
    expect(bench.leased).toBe(0);
  });

  it.for(['the signal aborts', 'the loop ends', 'the pool is closed'])(
    'does not keep the job from its end if it never returns: %s',
    async (how, { bench }) => {
      const caller = new AbortController();
      const asked = gate();
      const shouldRetry = () => (asked.open(), new Promise<never>(() => {}));
      const job = bench.map(['a'], fail, { retries: 1, shouldRetry, signal: caller.signal });
      const ended = job.next().then(
        ({ done }) => done,
        ({ name }: Error) => name,
      );
      await asked.promise;
      if (how === 'the signal aborts') caller.abort();
      else if (how === 'the loop ends') await job.return!();
      else await bench.pool.close();
      expect(await ended).toBe(
        { 'the signal aborts': 'AbortError', 'the pool is closed': 'PoolClosedError' }[how] ?? true,
      );
      expect(bench.leased).toBe(0);
    },
  );
});

describe('stopAfterFailures', () => {
  /** Fails for even inputs; the last task that runs takes longest. */
  const task = async ({ input }: { input: number }) => {
    await sleep(input === 4 ? 5 : 50);
    if (input % 2 === 0) throw new Error(`failure ${input}`);
    return input;
  };

  it.for([false, true])(
    'starts no more tasks, yields all outcomes and then throws TooManyFailuresError (ordered: %s)',
    async (ordered, { bench }) => {
      const begun: number[] = [];
      const seen: number[] = [];
      const counting: typeof task = ({ input }) => {
        begun.push(input);
        return task({ input });
      };
      const options = { stopAfterFailures: 3, concurrency: 2, ordered };
      const loop = async () => {
        for await (const { index } of bench.map(range(100), counting, options)) seen.push(index);
      };
      const error = await loop().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TooManyFailuresError);
      expect(error).toMatchObject({
        code: 'ERR_TOO_MANY_FAILURES',
        failures: 3,
        message: expect.stringContaining('3 inputs failed (option stopAfterFailures)') as string,
        cause: { message: expect.stringMatching(/^failure [024]$/) as string },
      });
      expect(new Set(seen)).toEqual(new Set(begun));
      expect(begun.length).toBeLessThan(10);
      if (ordered) expect(seen).toEqual(seen.toSorted((one, other) => one - other));
      expect([...bench.released.values()]).not.toContain('destroyed');
      expect(bench.leased).toBe(0);
    },
  );

  it('stores every outcome in the checkpoint, from which the job can be resumed', async ({ bench }) => {
    const path = join(tmpdir(), 'stopped.jsonl');
    onTestFinished(() => rm(path));
    const options = { checkpoint: path, concurrency: 2 };
    const stopped = bench.run(range(10), task, { ...options, stopAfterFailures: 2 });
    await expect(stopped).rejects.toThrow('2 inputs failed');
    const first: number[] = [];
    for await (const { index, status } of readCheckpoint(path)) if (status === 'fulfilled') first.push(index);
    expect(first.length).toBeGreaterThan(0);
    const rest = await bench.run(range(10), ({ input }) => input, options);
    expect(new Set([...first, ...rest.map(({ index }) => index)])).toEqual(new Set(range(10)));
    expect((await readFile(path, 'utf8')).trimEnd().split('\n')).toHaveLength(10);
  });

  it('ends the job although the next input never comes', async ({ bench }) => {
    const checkpoint = join(tmpdir(), 'endless.jsonl');
    onTestFinished(() => rm(checkpoint));
    async function* inputs() {
      yield* [0, 2];
      await new Promise(() => {});
    }
    const stopped = bench.run(inputs(), task, { stopAfterFailures: 2, checkpoint });
    await expect(stopped).rejects.toThrow('2 inputs failed');
    expect([bench.leased, existsSync(`${checkpoint}.lock`)]).toEqual([0, false]);
  });

  it('does not retry the tasks that still run', async ({ bench }) => {
    let begun = 0;
    const hasFailed = gate();
    const failing = async ({ input }: { input: number }) => {
      begun++;
      if (input === 0) await expect.poll(() => begun).toBe(3);
      else await hasFailed.promise;
      throw new Error(`failure ${input}`);
    };
    const seen: [index: number, attempts: number][] = [];
    const shouldRetry = (_: unknown, { index }: AttemptFacts) => index > 0;
    const loop = async () => {
      const outcomes = bench.map([0, 1, 2], failing, { retries: 1, stopAfterFailures: 1, shouldRetry });
      for await (const { index, attempts } of outcomes) {
        seen.push([index, attempts]);
        hasFailed.open();
      }
    };
    await expect(loop()).rejects.toThrow('1 input failed');
    expect(seen).toEqual(range(3).map((index) => [index, 1]));
  });

  it('waits for the outcome of a task that has lost its browser meanwhile', async ({ bench }) => {
    const [isLost, isStopped] = [gate(), gate()];
    let resets = 0;
    bench.resetPage = async () => (resets++ === 0 ? isStopped.promise : undefined);
    const failing = async ({ input, session }: Leased & { input: string }) => {
      if (input === 'second') await isLost.promise;
      else setTimeout(() => bench.lose(session.session_id));
      throw new Error(input);
    };
    const shouldRetry = async (error: unknown) => {
      if ((error as Error).message === 'first') await isStopped.promise;
      return false;
    };
    const onEvent = ({ type }: RunEvent) => type === 'browser-lost' && isLost.open();
    const how = { isolation: 'storage', retries: 1, shouldRetry, onEvent, concurrency: 2 } as const;
    const seen: number[] = [];
    const loop = async () => {
      for await (const { index } of bench.map(['first', 'second'], failing, {
        ...how,
        stopAfterFailures: 1,
      })) {
        seen.push(index);
        // Long enough for the end of the other browser.
        setTimeout(isStopped.open, 200);
      }
    };
    await expect(loop()).rejects.toBeInstanceOf(TooManyFailuresError);
    expect(seen).toEqual([1, 0]);
  });
});

it('taskTimeout aborts the signal, closes the page, and gives the next task another page', async ({
  bench,
}) => {
  let signal: AbortSignal | undefined;
  const task = (running: { input: number; signal: AbortSignal }) => {
    if (running.input === 1) return 'done';
    signal = running.signal;
    return new Promise<never>(() => {});
  };
  const options = { taskTimeout: 100, concurrency: 1, isolation: 'none', ordered: true } as const;
  const [failed, done] = await bench.run([0, 1], task, options);
  const { reason } = failed as { reason?: unknown };
  expect(reason).toBeInstanceOf(TaskTimeoutError);
  expect(reason).toMatchObject({ code: 'ERR_TASK_TIMEOUT', timeout: 100, sessionId: 's1' });
  expect(signal?.reason).toBe(reason);
  expect(done).toMatchObject({ status: 'fulfilled', value: 'done' });
  // The connection adds the first page.
  expect(bench.pages.slice(1)).toMatchObject([{ isClosed: true }, { isClosed: false }]);
  expect(bench.granted).toHaveLength(1);
});

describe('when a browser is lost', () => {
  it('the running task fails with BrowserLostError, and is retried on another browser', async ({ bench }) => {
    const errors: unknown[] = [];
    const shouldRetry = (error: unknown) => errors.push(error) > 0;
    const task = ({ input, attempt, session }: Leased & { input: number; attempt: number }) => {
      if (input !== 1 || attempt > 1) return session.session_id;
      bench.lose(session.session_id);
      return new Promise<never>(() => {});
    };
    const options = { retries: 1, shouldRetry, concurrency: 1, ordered: true };
    expect(await bench.run(range(3), task, options)).toMatchObject([
      { value: 's1', attempts: 1 },
      { value: 's2', attempts: 2 },
      { value: 's2', attempts: 1 },
    ]);
    expect(errors).toEqual([expect.any(BrowserLostError)]);
    expect([...bench.released]).toEqual([
      ['s1', 'destroyed'],
      ['s2', 'reused'],
    ]);
  });

  it('no attempt is counted if no task was running', async ({ bench }) => {
    let runs = 0;
    async function* inputs() {
      yield 0;
      await expect.poll(() => runs).toBe(1);
      bench.lose('s1');
      await expect.poll(() => bench.released.size).toBe(1);
      yield 1;
    }
    const task = ({ session }: Leased) => (runs++, session.session_id);
    expect(await bench.run(inputs(), task)).toMatchObject([
      { value: 's1', attempts: 1 },
      { value: 's2', attempts: 1 },
    ]);
  });
});

it('destroys a browser that opens no page, which is no attempt of the task', async ({ bench }) => {
  let opened = 0;
  bench.openPage = async () => {
    if (++opened === 2) throw new Error('no page');
  };
  const outcomes = await bench.run(range(4), ({ attempt }) => attempt, { concurrency: 1 });
  expect(outcomes.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
  expect([...bench.released.values()]).toEqual(['destroyed', 'reused']);
});

describe('recycling', () => {
  it('leases the next browser while the service releases the last one', async ({ bench }) => {
    bench.service.script('release', async (response, { body }) => {
      const id = body!['session_id'] as string;
      if (id === 's1') await expect.poll(() => bench.granted).toEqual(['s1', 's2']);
      bench.released.set(id, 'reused');
      reply(response, { status: 204 });
    });
    const outcomes = bench.map(range(2), () => 0, { tasksPerLease: 1, concurrency: 1 });
    expect(await valuesOf(outcomes)).toEqual([0, 0]);
    expect([...bench.released.keys()].toSorted()).toEqual(['s1', 's2']);
  });

  it('releases a browser after tasksPerLease tasks, and numbers the next lease', async ({ bench }) => {
    bench.size = 1;
    const options = { tasksPerLease: 3, ordered: true, concurrency: 1, name: 'crawl' };
    const sessions = await valuesOf(bench.map(range(7), ({ session }) => session.session_id, options));
    expect(sessions).toEqual(['s1', 's1', 's1', 's2', 's2', 's2', 's3']);
    expect([...bench.released.values()]).toEqual(['reused', 'reused', 'reused']);
    const names = bench.service.of('acquire').map(({ body }) => body?.['name']);
    expect(names).toEqual(['crawl-1', 'crawl-2', 'crawl-3']);
  });

  it('counts the tasks of all pages of a browser', async ({ bench }) => {
    const tasks = new Map<string, number>();
    const task = async ({ session: { session_id: id } }: Leased) => {
      tasks.set(id, (tasks.get(id) ?? 0) + 1);
      await sleep(5);
    };
    await bench.run(range(20), task, { concurrency: 1, pagesPerLease: 3, tasksPerLease: 4 });
    expect([...tasks.values()]).toEqual([4, 4, 4, 4, 4]);
  });

  it('releases a browser at maxLeaseAge, after its task has ended', async ({ bench }) => {
    const task = ({ session }: Leased) => sleep(300, session.session_id);
    const sessions = await valuesOf(bench.map(range(2), task, { concurrency: 1, maxLeaseAge: 100 }));
    // On a busy machine, a browser can be too old before its first task.
    expect(new Set(sessions).size).toBe(2);
    expect(new Set(bench.released.values())).toEqual(new Set(['reused']));
  });
});
