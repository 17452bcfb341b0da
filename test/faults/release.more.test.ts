import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { hang, reset } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { JWT, TOKEN, reply, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

afterEach(() => void vi.useRealTimers());

const DAY = 86_400_000;

const FAILURES: [string, Answer, 'failed' | 'unknown'][] = [
  ['500', { status: 500, text: `${TOKEN} ${JWT}` }, 'failed'],
  ['503', { status: 503, headers: { 'retry-after': '86400' } }, 'failed'],
  ['a reset', reset, 'unknown'],
];

describe.each(DRIVERS)('$name', (driver) => {
  it('repeats the release until it is confirmed', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('release', ...FAILURES.map(([, answer]) => answer), bench.takeBack);
    const outcome = await bench.run(driver, () => 'value');
    expect(outcome).toMatchObject({ value: 'value', run: { released: 'reused', cleanupErrors: [] } });
    expect(bench.service.released).toHaveLength(FAILURES.length + 1);
    await bench.settle();
  });

  it.each([...FAILURES, ['nothing', hang, 'unknown'] as const])(
    'reports the unreleased browser by its session id when each release gets %s, and returns the value',
    async (_what, answer, released) => {
      await using bench = await FaultBench.start(used.local);
      // A permanent error ends the repetitions: a short timeout could also end before an answer of a busy machine.
      const isFinal = released === 'failed';
      bench.service.script('release', answer, answer, isFinal ? { status: 400 } : answer);
      const limits = isFinal ? {} : { releaseTimeout: 1500 };
      const outcome = await bench.run(driver, () => 'value', limits);
      expect(outcome).toMatchObject({ value: 'value', run: { released } });
      const facts = { code: 'ERR_RELEASE', sessionId: 'lease-1', cause: expect.any(Error) };
      expect(outcome.run!.cleanupErrors).toMatchObject([facts]);
      if (isFinal) expect(bench.service.released).toHaveLength(3);
      else expect(outcome.run!.timings.release).toBeLessThan(1500 + 20_000);
      await bench.settle({ unreleased: ['lease-1'] });
    },
  );

  it('does not let an abort shorten the release', async () => {
    await using bench = await FaultBench.start(used.local);
    const caller = new AbortController();
    const reason = { my: 'reason' };
    bench.service.script('release', async (response, request) => {
      caller.abort(reason);
      await sleep(2000);
      await (bench.takeBack as (...args: unknown[]) => unknown)(response, request);
    });
    const { error, events } = await bench.run(driver, () => 'value', { signal: caller.signal });
    expect(error).toBe(reason);
    expect(bench.released.size).toBe(0);
    await bench.settle();
    expect(events.at(-2)).toMatchObject({ type: 'released', sessionId: 'lease-1' });
  });

  it('treats an expired lease as released, and explains why its replays are unavailable', async () => {
    await using bench = await FaultBench.start(used.local);
    const gone: Answer = { status: 404, json: { code: 'not_found', message: 'no such session' } };
    bench.service.script('release', (response, { body }) => {
      bench.released.add(String(body?.['session_id']));
      response.writeHead(404).end();
    });
    bench.service.script('replays', { status: 200, json: [] }, gone);
    const { run, value } = await bench.run(driver, () => 'value');
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'destroyed', replayStatus: 'unavailable' });
    expect(run!.cleanupErrors).toMatchObject([{ status: 404, hint: expect.stringMatching(/inactivity/) }]);
    await bench.settle();
  });

  it.each<[string, Answer, string, number]>([
    ['an empty list', { status: 200, json: [] }, 'none', 0],
    ['an unfinished one', { status: 200, json: [{ replay_id: 'r', started_at: 'now' }] }, 'pending', 1],
    ['null fields', { status: 200, json: [{ replay_id: 'r', finished_at: null }] }, 'pending', 1],
    ['a finished one', { status: 200, json: [{ replay_id: 'r', finished_at: 'now' }] }, 'ready', 1],
    ['404', { status: 404 }, 'unavailable', 0],
    ['500', { status: 500, text: `${TOKEN} ${JWT}` }, 'unavailable', 0],
    [
      'a page',
      { status: 200, text: `<html>${JWT}`, headers: { 'content-type': 'text/html' } },
      'unavailable',
      0,
    ],
    ['no list', { status: 200, json: { replays: null } }, 'unavailable', 0],
    ['nothing', hang, 'unavailable', 0],
    ['a reset', reset, 'unavailable', 0],
  ])(
    'returns the value and the replay status when the list of replays is %s',
    async (_what, answer, status, count) => {
      for (const isSecond of [true, false]) {
        await using bench = await FaultBench.start(used.local);
        const answers = isSecond ? [{ status: 200, json: [] }, answer] : [answer, { status: 200, json: [] }];
        bench.service.script('replays', ...answers);
        // Short only for a list that never comes: a busy machine may need longer for the others.
        const limits = answer === hang ? { replaysTimeout: 300 } : {};
        const { value, run } = await bench.run(driver, () => 'value', limits);
        expect(value).toBe('value');
        expect(run!.released).toBe('reused');
        expect(run!.replayStatus).toBe(isSecond || status === 'unavailable' ? status : 'none');
        expect(run!.replays).toHaveLength(isSecond ? count : 0);
        // A request that has timed out is neither waited for nor keeps a socket open.
        const began = performance.now();
        await bench.settle();
        expect(performance.now() - began).toBeLessThan(20_000);
      }
    },
  );

  it('stops waiting for the replays when the connect fails', async () => {
    await using bench = await FaultBench.start();
    bench.service.script('replays', hang);
    bench.road.play((socket) => void socket.resetAndDestroy());
    const { error } = await bench.run(driver, () => {});
    expect(error).toMatchObject({ code: 'ERR_CONNECT' });
    const began = performance.now();
    await bench.settle();
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  it.each([
    ['forwards', DAY],
    ['backwards', -DAY],
  ])('keeps its deadlines and timings when the wall clock jumps a day %s', async (_direction, day) => {
    await using bench = await FaultBench.start(used.local);
    vi.useFakeTimers({ toFake: ['Date'] });
    const jump = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds);
    const after =
      (milliseconds: number, answer: Answer): Answer =>
      (...request) => {
        jump(milliseconds);
        return typeof answer === 'function' ? answer(...request) : reply(request[0], answer);
      };
    // Back before the grant: the local pool checks its JWTs against the wall clock.
    bench.service.script('acquire', after(day, { status: 204 }), after(-day, bench.grant));
    bench.service.script('release', after(-day, bench.takeBack));
    const work = async ({ page, signal }: AnyLease) => {
      jump(day);
      await sleep(100);
      return [signal.aborted, await page.evaluate('1')];
    };
    const { value, run, elapsed } = await bench.run(driver, work, { timeout: 60_000 });
    expect(value).toEqual([false, 1]);
    expect(run).toMatchObject({ released: 'reused', acquireAttempts: 2 });
    expect(run!.timings.callback).toBeGreaterThan(90);
    expect(run!.timings.total).toBeGreaterThan(run!.timings.callback!);
    expect(run!.timings.total).toBeLessThan(elapsed + 1);
    await bench.settle();
  });
});
