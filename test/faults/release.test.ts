import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { hang, reset } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS } from '../support/drivers.js';
import { JWT, TOKEN, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

afterEach(() => void vi.useRealTimers());

const FAILURES: [string, Answer][] = [
  ['500', { status: 500, text: `${TOKEN} ${JWT}` }],
  ['503', { status: 503, headers: { 'retry-after': '86400' } }],
  ['a reset', reset],
];

describe.each(DRIVERS)('$name', (driver) => {
  it('asks until the release is confirmed', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('release', ...FAILURES.map(([, answer]) => answer), bench.takeBack);
    const outcome = await bench.run(driver, () => 'value');
    expect(outcome).toMatchObject({ value: 'value', run: { released: 'reused', cleanupErrors: [] } });
    expect(bench.service.released).toHaveLength(FAILURES.length + 1);
    await bench.settle();
  });

  it.each([...FAILURES, ['nothing', hang] as [string, Answer]])(
    'names the browser when the release gets %s until its own deadline, and returns the value',
    async (_what, answer) => {
      await using bench = await FaultBench.start(used.local);
      bench.service.script('release', answer);
      const outcome = await bench.run(driver, () => 'value', { releaseTimeout: 400 });
      expect(outcome).toMatchObject({ value: 'value', run: { released: 'failed' } });
      const facts = { code: 'ERR_RELEASE', sessionId: 'lease-1', cause: expect.any(Error) };
      expect(outcome.run!.cleanupErrors).toMatchObject([facts]);
      expect(outcome.run!.timings.release).toBeLessThan(400 + 2000);
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
    expect(events.at(-1)).toMatchObject({ type: 'released', sessionId: 'lease-1' });
  });

  it('takes a lease that has expired for given back, and says so of its replays', async () => {
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
    'keeps the value when the replays are %s, and tells their status',
    async (_what, answer, status, count) => {
      for (const isSecond of [true, false]) {
        await using bench = await FaultBench.start(used.local);
        const answers = isSecond ? [{ status: 200, json: [] }, answer] : [answer, { status: 200, json: [] }];
        bench.service.script('replays', ...answers);
        const { value, run } = await bench.run(driver, () => 'value', { replaysTimeout: 300 });
        expect(value).toBe('value');
        expect(run!.released).toBe('reused');
        expect(run!.replayStatus).toBe(isSecond || status === 'unavailable' ? status : 'none');
        expect(run!.replays).toHaveLength(isSecond ? count : 0);
        // What was given up is not waited for any longer, nor does it hold a socket.
        const began = performance.now();
        await bench.settle();
        expect(performance.now() - began).toBeLessThan(5000);
      }
    },
  );

  it('asks for no replays any more once the connect has failed', async () => {
    await using bench = await FaultBench.start();
    bench.service.script('replays', hang);
    bench.road.play((socket) => void socket.resetAndDestroy());
    const { error } = await bench.run(driver, () => {});
    expect(error).toMatchObject({ code: 'ERR_CONNECT' });
    const began = performance.now();
    await bench.settle();
    expect(performance.now() - began).toBeLessThan(5000);
  });

  it('does not care when the wall clock jumps a day, forth or back', async () => {
    for (const jump of [86_400_000, -86_400_000]) {
      await using bench = await FaultBench.start(used.local);
      let clock = Date.now();
      const lease = bench.grant as (...args: unknown[]) => unknown;
      bench.service.script('acquire', { status: 204 }, async (...request) => {
        // The local pool must not see its own jwt expire: this clock jumps after the grant.
        await lease(...request);
        vi.spyOn(Date, 'now').mockImplementation(() => (clock += jump / 100));
      });
      bench.road.play((_socket, { join }) => {
        const jumping = Date.now;
        vi.restoreAllMocks();
        join();
        setTimeout(() => vi.spyOn(Date, 'now').mockImplementation(jumping), 50);
      });
      const outcome = await bench.run(
        driver,
        async ({ page, signal }) => {
          await sleep(100);
          return [signal.aborted, await page.evaluate('1')];
        },
        { timeout: 20_000 },
      );
      vi.restoreAllMocks();
      expect(outcome).toMatchObject({ value: [false, 1], run: { released: 'reused' } });
      expect(outcome.run!.timings.total).toBeLessThan(30_000);
      expect(outcome.run!.timings.total).toBeGreaterThan(0);
      await bench.settle();
    }
  });
});
