import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, vi } from 'vitest';
import { InvalidOptionError } from '../../src/index.js';
import { hostNames } from '../../src/jobs/host-limits.js';
import { iterableSource } from '../../src/jobs/input-source.js';
import { Progress } from '../../src/jobs/progress.js';
import { TaskQueue } from '../../src/jobs/task-queue.js';
import { clock, delay } from '../../src/shared/clock.js';
import { useFakeClock } from '../support/fake-clock.js';
import { it } from './it.js';
import { counted, range } from './support.js';

const UNLIMITED = { hostConcurrency: Number.POSITIVE_INFINITY, hostDelay: 0 };
/** Duration of a task, in ms. */
const TASK = 100;

describe('with the clock of the library', () => {
  interface Started {
    host: string;
    at: number;
    /** Tasks of this host that run then, with this one. */
    running: number;
  }

  interface Plan {
    lanes?: number;
    /** Time in ms between the moment a lane takes a task and its start. */
    opens?: (input: string) => number;
    /** `retryAfter` of the task. */
    pauses?: (input: string) => number;
    isDelivered?: boolean;
    isShared?: boolean;
    ordered?: boolean;
    room?: number;
  }

  /** Runs tasks for inputs such as `a1`, whose host is `a`, for some fake time. Resolves with their starts. */
  async function play(
    inputs: Iterable<string> | AsyncIterable<string>,
    limits: Partial<typeof UNLIMITED>,
    { lanes = 4, opens = () => 0, pauses = () => 0, isDelivered = true, ...plan }: Plan = {},
  ): Promise<Started[]> {
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const source = { ...iterableSource(inputs), isShared: plan.isShared ?? false };
    const { signal } = new AbortController();
    const rules = {
      retries: 0,
      shouldRetry: undefined,
      retry: { factor: 1, minTimeout: 1, maxTimeout: 1, randomize: false },
      progress: new Progress(undefined, undefined, () => 0),
      signal,
      deliver: () => isDelivered && queueMicrotask(() => queue.receive()),
      fail: (error: unknown) => {
        throw error;
      },
    };
    const queuePlan = {
      limits: { ...UNLIMITED, ...limits },
      hostOf: ([host]: string) => (host === '-' ? undefined : host),
      ordered: plan.ordered ?? false,
      room: plan.room ?? 2 * lanes,
    };
    const queue: TaskQueue<string, unknown, object> = new TaskQueue(source, queuePlan, rules);
    const began = clock.now();
    const starts: Started[] = [];
    const running: string[] = [];
    const work = async () => {
      for (;;) {
        const task = await queue.claim(signal);
        if (!task) return;
        const { input, host = '-' } = task;
        if (opens(input) > 0) await delay(opens(input));
        task.begin();
        running.push(host);
        starts.push({ host, at: clock.now() - began, running: running.filter((one) => one === host).length });
        await delay(TASK);
        running.splice(running.indexOf(host), 1);
        await task.end(
          { status: 'rejected', reason: { retryAfter: pauses(input) } },
          { session: {}, sessionId: 's1', replays: [] },
        );
      }
    };
    const working = Promise.all(Array.from({ length: lanes }, work));
    await vi.advanceTimersByTimeAsync(60_000);
    queue.close();
    await vi.advanceTimersByTimeAsync(60_000);
    await working;
    return starts;
  }

  const timesOf = (starts: Started[], host: string) =>
    starts.filter((start) => start.host === host).map(({ at }) => Math.round(at));

  it('runs hostConcurrency tasks at once for a host, and those of other hosts meanwhile', async () => {
    const inputs = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', '-1', '-2', '-3'];
    const starts = await play(inputs, { hostConcurrency: 2 });
    expect(timesOf(starts, 'a')).toEqual([0, 0, 100, 100, 200]);
    // Two of four lanes are free. Inputs without a host have no limits.
    expect(timesOf(starts, 'b')).toEqual([0]);
    expect(timesOf(starts, '-')).toEqual([0, 100, 100]);
    expect(Math.max(...starts.filter(({ host }) => host === 'a').map(({ running }) => running))).toBe(2);
  });

  it('starts the tasks of a host hostDelay apart, also if one of them starts late', async () => {
    const opens = (input: string) => (input === 'a1' ? 500 : 0);
    const starts = await play(['a1', 'a2', 'b1', 'a3', 'b2'], { hostDelay: 1000 }, { opens });
    expect(timesOf(starts, 'a')).toEqual([500, 1500, 2500]);
    expect(timesOf(starts, 'b')).toEqual([0, 1000]);
  });

  it('starts no task of a host before the retryAfter of an earlier one, and others meanwhile', async () => {
    const pauses = (input: string) => (input === 'a1' ? 5000 : 0);
    const starts = await play(['a1', 'a2', 'b1', 'b2', 'a3'], { hostConcurrency: 1 }, { pauses });
    expect(timesOf(starts, 'a')).toEqual([0, 5100, 5200]);
    expect(timesOf(starts, 'b')).toEqual([0, 100]);
  });

  it.for([
    [false, 1000],
    [true, 100],
  ] as const)('shared source: %s: holds back %i inputs of a busy host', async ([isShared, held]) => {
    const source = counted(5000);
    async function* inputs() {
      for await (const input of source.inputs) yield input === held - 1 ? 'b' : 'a';
    }
    const starts = await play(inputs(), { hostDelay: 1_000_000 }, { isShared, lanes: 2 });
    // The other inputs that were pulled are held back.
    expect(starts.map(({ host }) => host)).toEqual(['a', 'b']);
    expect(source.pulled).toBe(held + 2);
  });

  it('starts no held task while the loop is busy, unless its outcome is the next one in order', async () => {
    const inputs = Array.from({ length: 50 }, (_, index) => `a${index}`);
    const plan = { isDelivered: false, lanes: 2, room: 4 };
    const starts = await play(inputs, { hostConcurrency: 1 }, plan);
    expect(starts.length).toBeLessThanOrEqual(plan.room + plan.lanes);
    expect(await play(inputs, { hostConcurrency: 1 }, { ...plan, ordered: true })).toHaveLength(50);
  });
});

it('names the host of a URL, and of an object with one, and otherwise asks for hostOf', () => {
  const limited = { ...UNLIMITED, hostDelay: 1 };
  const nameOf = hostNames({ ...limited, hostOf: undefined });
  const url = 'https://example.com:8443/page';
  for (const input of [url, new URL(url), { url }, { url: new URL(url) }])
    expect(nameOf(input, 0)).toBe('example.com:8443');
  for (const input of ['example.com/page', 'data:text/html,', { id: 1 }, 7, null]) {
    expect(() => nameOf(input, 3)).toThrow('Input 3 is no URL and has no url');
    expect(hostNames({ ...UNLIMITED, hostOf: undefined })(input, 0)).toBeUndefined();
  }
  const given = hostNames({ ...limited, hostOf: (input) => input as string | undefined });
  expect([given('shop', 0), given(undefined, 0)]).toEqual(['shop', undefined]);
  expect(() => given(7, 0)).toThrow('hostOf must return the name of a host');
});

it('ends the job with the error of an input without a host', async ({ bench }) => {
  const run = bench.run(['nowhere'], () => {}, { hostConcurrency: 1 });
  await expect(run).rejects.toBeInstanceOf(InvalidOptionError);
});

it('limits and spaces the tasks of each host of a job, and honours the retryAfter of a task', async ({
  bench,
}) => {
  const seen = { now: 0, most: 0, at: [] as number[] };
  const task = async ({ input, attempt }: { input: string; attempt: number }) => {
    if (input.startsWith('http://other')) return;
    seen.most = Math.max(seen.most, ++seen.now);
    seen.at.push(performance.now());
    await sleep(30);
    seen.now--;
    const retryAfter = 1000;
    if (input.endsWith('/3') && attempt === 1) throw Object.assign(new Error('Too many'), { retryAfter });
  };
  const inputs = range(6).flatMap((id) => [`http://limited/${id}`, `http://other/${id}`]);
  const options = { concurrency: 2, pagesPerLease: 4, hostConcurrency: 2, hostDelay: 50, retries: 1 };
  const outcomes = await bench.run(inputs, task, options);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(12);
  const retried = outcomes.filter(({ attempts }) => attempts === 2);
  expect(retried.map(({ input }) => input)).toEqual(['http://limited/3']);
  expect(seen.most).toBeLessThanOrEqual(2);
  expect(seen.at).toHaveLength(7);
  const gaps = seen.at.slice(1).map((at, index) => at - seen.at[index]!);
  // A task may start late, but none starts early.
  expect(seen.at.at(-1)! - seen.at[0]!).toBeGreaterThan(1000);
  expect(Math.max(...gaps)).toBeGreaterThan(800);
});
