import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  AcquireTimeoutError,
  BrowserLostError,
  CallbackTimeoutError,
  PoolResponseError,
} from '../../src/index.js';
import { breakOff, drip, hang, reset, until } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { PLAIN, type AnyLease } from '../support/drivers.js';
import { JWT, TOKEN, reply, type Answer, type SeenRequest } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';

useCollected();
useQuiet();
afterEach(() => void vi.useRealTimers());

const HTML = { 'content-type': 'text/html' };
const JSON_TYPE = { 'content-type': 'application/json' };
const PAGE = `<html>${TOKEN} ?jwt=${JWT} ${'x'.repeat(5000)}</html>`;
const DAY = 86_400_000;

const ok = (text?: string, headers: Record<string, string> = JSON_TYPE): Answer =>
  text === undefined ? { status: 200 } : { status: 200, text, headers };

const play = (answer: Answer, response: ServerResponse, request: SeenRequest) =>
  typeof answer === 'function' ? answer(response, request) : reply(response, answer);

/** Answers after a step of the test. */
const after =
  (step: () => unknown, answer: Answer): Answer =>
  async (...request) => {
    await step();
    await play(answer, ...request);
  };

describe('an acquire request', () => {
  // After each answer, a browser may be leased, with an unknown id. The number: how often the request is sent.
  it.each<[string, Answer, string, number]>([
    ['a reset before the headers', reset, 'ERR_POOL_NO_RESPONSE', 2],
    ['a page with 502', { status: 502, text: PAGE, headers: HTML }, 'http_502', 2],
    ['a 500', { status: 500, json: { code: 'internal', message: `failed for ${TOKEN}` } }, 'internal', 2],
    ['a reset in the body', breakOff('{"created_at": "2026'), 'ERR_POOL_RESPONSE', 1],
    ['JSON that is cut in the id', ok('{"session_id": "le'), 'ERR_POOL_RESPONSE', 1],
    ['a page with 200', ok(PAGE, HTML), 'ERR_POOL_RESPONSE', 1],
    ['an empty 200', ok(), 'ERR_POOL_RESPONSE', 1],
    ['an array', ok(JSON.stringify([TOKEN])), 'ERR_POOL_RESPONSE', 1],
    ['a string', ok(JSON.stringify(TOKEN)), 'ERR_POOL_RESPONSE', 1],
    ['a body of 5 MB', ok(`"${'x'.repeat(5e6)}"`), 'ERR_POOL_RESPONSE', 1],
    ['deep JSON', ok('['.repeat(1e5) + ']'.repeat(1e5)), 'ERR_POOL_RESPONSE', 1],
    [
      'a compressed body',
      (response) =>
        void response
          .writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' })
          .end(gzipSync(`"${'x'.repeat(1e6)}"`)),
      'ERR_POOL_RESPONSE',
      1,
    ],
  ])('leases no browser with %s, and reports the unknown outcome', async (_what, answer, code, requests) => {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', bench.unknowable(answer));
    const { error, run } = await bench.run(PLAIN, () => {});
    expect(error).toMatchObject({ code });
    expect(error!.message.length).toBeLessThan(500);
    expect(bench.service.of('acquire')).toHaveLength(requests);
    expect(run).toMatchObject({ acquireAttempts: requests, unknownAcquires: requests });
    await bench.settle();
    if (requests === 1) return;
    await using next = await FaultBench.start();
    next.service.script('acquire', next.unknowable(answer), next.grant);
    const outcome = await next.run(PLAIN, () => 'value');
    expect(outcome).toMatchObject({ value: 'value', run: { acquireAttempts: 2, unknownAcquires: 1 } });
    await next.settle();
  });

  it.each<[string, (bench: FaultBench) => Answer]>([
    ['breaks off after its id', (bench) => breakOff(JSON.stringify(bench.fakeSession()).slice(0, -20))],
    ['lacks a field', (bench) => ({ status: 200, json: bench.fakeSession({ cdp_ws_url: undefined }) })],
    ['has null for a field', (bench) => ({ status: 200, json: bench.fakeSession({ headless: null }) })],
    ['has a wrong type', (bench) => ({ status: 200, json: bench.fakeSession({ timeout_seconds: '60' }) })],
    ['has the content type of a page', (bench) => ok(JSON.stringify(bench.fakeSession()), HTML)],
  ])('is repeated once after a session that %s, which is released', async (_what, answer) => {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', (...request) => play(answer(bench), ...request));
    const { error } = await bench.run(PLAIN, () => {});
    expect(error).toBeInstanceOf(PoolResponseError);
    await expect.poll(() => bench.service.released).toEqual(['lease-1', 'lease-2']);
    expect(bench.service.of('acquire')).toHaveLength(2);
    await bench.settle();
  });

  it('ends at acquireTimeout if its response never ends, and reports the unknown outcome later', async () => {
    // A 503 says that nothing was leased, however its body ends.
    const endless: [Answer, number][] = [
      [hang, 1],
      [drip(200), 1],
      [drip(503), 0],
    ];
    const ends = endless.map(async ([answer, unknown]) => {
      await using bench = await FaultBench.start();
      bench.service.script('acquire', answer);
      bench.unknown = unknown;
      // The request must be sent before the timeout.
      const limits = { acquireTimeout: 2000, within: 2000 };
      const { error, run, events } = await bench.run(PLAIN, () => {}, limits);
      expect(error).toBeInstanceOf(AcquireTimeoutError);
      expect(run).toMatchObject({ unknownAcquires: 1 });
      await expect.poll(() => bench.service.of('acquire').length).toBe(1);
      await bench.service.close();
      await bench.settle();
      expect(events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(unknown);
    });
    await Promise.all(ends);
  });
});

describe('a release', () => {
  const FAILURES: [string, Answer, 'failed' | 'unknown'][] = [
    ['500', { status: 500, text: `${TOKEN} ${JWT}` }, 'failed'],
    ['503', { status: 503, headers: { 'retry-after': '86400' } }, 'failed'],
    ['a reset', reset, 'unknown'],
  ];

  it('is repeated until the service confirms it', async () => {
    await using bench = await FaultBench.start();
    bench.service.script('release', ...FAILURES.map(([, answer]) => answer), bench.takeBack);
    const outcome = await bench.run(PLAIN, () => 'value');
    expect(outcome).toMatchObject({ value: 'value', run: { released: 'reused', cleanupErrors: [] } });
    expect(bench.service.released).toHaveLength(FAILURES.length + 1);
    await bench.settle();
  });

  it.each([...FAILURES, ['nothing', hang, 'unknown'] as const])(
    'that always gets %s is reported with its session id, and the call returns its value',
    async (_what, answer, released) => {
      await using bench = await FaultBench.start();
      // A permanent error ends the repetitions: a short timeout could also end before an answer of a busy machine.
      const isFinal = released === 'failed';
      bench.service.script('release', answer, answer, isFinal ? { status: 400 } : answer);
      const outcome = await bench.run(PLAIN, () => 'value', isFinal ? {} : { releaseTimeout: 800 });
      expect(outcome).toMatchObject({ value: 'value', run: { released } });
      const facts = { code: 'ERR_RELEASE', sessionId: 'lease-1', cause: expect.any(Error) };
      expect(outcome.run!.cleanupErrors).toMatchObject([facts]);
      if (isFinal) expect(bench.service.released).toHaveLength(3);
      else expect(outcome.run!.timings.release).toBeLessThan(800 + 20_000);
      await bench.settle({ unreleased: ['lease-1'] });
    },
  );

  it('may come from the callback itself', async () => {
    await using bench = await FaultBench.start();
    const release = ({ session }: AnyLease) => bench.pool.release(session.session_id);
    expect(await bench.run(PLAIN, release)).toMatchObject({ run: { released: 'destroyed' } });
    expect(bench.service.released).toEqual(['lease-1', 'lease-1']);
    await bench.settle({ isEarly: true });
  });
});

describe('an abort', () => {
  it('during the request for replays rejects at once, and the browser is still released', async () => {
    await using bench = await FaultBench.start();
    bench.service.script('replays', { status: 200, json: [] }, hang);
    await abortWhen(bench, () => bench.service.of('replays').length === 2);
    await bench.settle();
    expect(bench.service.released).toEqual(['lease-1']);
  });

  it('is the outcome of a call whose callback rejects long after it', async () => {
    await using bench = await FaultBench.start();
    const caller = new AbortController();
    const reason = { my: 'reason' };
    let rejected = false;
    const callback = async () => {
      caller.abort(reason);
      await sleep(300);
      rejected = true;
      throw new Error('too late');
    };
    const { error } = await bench.run(PLAIN, callback, { signal: caller.signal });
    expect(error).toBe(reason);
    await expect.poll(() => rejected).toBe(true);
    await bench.settle();
  });

  /** Aborts when the condition holds, and checks that the promise rejects with the reason. */
  async function abortWhen(bench: FaultBench, condition: () => boolean) {
    const caller = new AbortController();
    const reason = new Error('mine');
    // For the list of replays that never comes.
    const limits = { replaysTimeout: 2000, signal: caller.signal };
    const running = bench.run(PLAIN, () => 'value', limits);
    await until(condition);
    caller.abort(reason);
    const outcome = await running;
    expect(outcome.error).toBe(reason);
    return outcome;
  }
});

it.each([true, false])(
  "rejects with the callback's own error, if the cleanup works: %j",
  async (isCleanedUp) => {
    await using bench = await FaultBench.start();
    if (!isCleanedUp) {
      bench.service.script('release', { status: 400 });
      bench.service.script('replays', { status: 500 });
    }
    const mine = Object.freeze(new TypeError('mine'));
    const { error, run } = await bench.run(PLAIN, () => Promise.reject(mine));
    expect(error).toBe(mine);
    expect(run!.released).toBe(isCleanedUp ? 'reused' : 'failed');
    const codes = run!.cleanupErrors.map((cleanup) => (cleanup as BrowserLostError).code);
    expect(codes).toEqual(isCleanedUp ? [] : ['http_500', 'ERR_RELEASE']);
    await bench.settle(isCleanedUp ? {} : { unreleased: ['lease-1'] });
  },
);

it.each<[string, (bench: FaultBench) => void, object, new (...args: never[]) => Error]>([
  ['was lost', (bench) => bench.road.lose('reset'), {}, BrowserLostError],
  ['was used beyond the timeout', () => {}, { timeout: 100 }, CallbackTimeoutError],
])(
  'has the recording of a browser that %s, stopped before the release',
  async (_what, fail, options, type) => {
    await using bench = await FaultBench.start();
    const replay = { replay_id: 'replay-1', finished_at: 'now', replay_view_url: 'https://x/1' };
    bench.service.script('replays', { status: 200, json: [] }, { status: 200, json: [replay] });
    const callback = () => {
      fail(bench);
      return new Promise(() => {});
    };
    const { error, run } = await bench.run(PLAIN, callback, { replays: 'record', ...options });
    expect(error).toBeInstanceOf(type);
    expect(run).toMatchObject({ replays: [replay], replayStatus: 'ready', released: 'destroyed' });
    await bench.settle();
    const asked = bench.service.requests.map(({ path }) => path.split('/').at(-1));
    expect(asked.filter((path) => path === 'stop' || path === 'release')).toEqual(['stop', 'release']);
  },
);

it.each([
  ['forwards', DAY],
  ['backwards', -DAY],
])('keeps its deadlines and timings when the wall clock jumps a day %s', async (_direction, day) => {
  await using bench = await FaultBench.start();
  vi.useFakeTimers({ toFake: ['Date'] });
  const jump = () => void vi.setSystemTime(Date.now() + day);
  bench.service.script('acquire', after(jump, { status: 204 }), bench.grant);
  bench.service.script('release', after(jump, bench.takeBack));
  const work = async ({ signal }: AnyLease) => {
    jump();
    await sleep(100);
    return signal.aborted;
  };
  const { value, run, elapsed } = await bench.run(PLAIN, work, { timeout: 60_000 });
  expect(value).toBe(false);
  expect(run).toMatchObject({ released: 'reused', acquireAttempts: 2 });
  expect(run!.timings.callback).toBeGreaterThan(90);
  expect(run!.timings.total).toBeGreaterThan(run!.timings.callback!);
  expect(run!.timings.total).toBeLessThan(elapsed + 1);
  await bench.settle();
});
