import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Answer } from '../support/fake-service.js';
import { acquireWith, GRANT, LONG, NONE, waits, watchTimeouts } from './support.js';

/** The simulated clock. It stands still, so that no delay of a busy machine counts. */
let clock = 0;

beforeEach(() => {
  clock = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Answers without a browser after a number of seconds of the simulated clock. */
function noneAfter(seconds: number, status = 204): Answer {
  return (response) => {
    clock += 1000 * seconds;
    response.writeHead(status).end();
  };
}

const forever = { acquireTimeout: Number.POSITIVE_INFINITY };

/** True if the answer counts as early: with `retries: 0` it ends the call. */
async function isEarly(answer: Answer, pollTimeout: number | false): Promise<boolean> {
  const { session, error } = await acquireWith([answer, GRANT], {
    ...forever,
    pollTimeout,
    retry: { retries: 0 },
  });
  if (session) return false;
  expect(error).toBeDefined();
  return true;
}

describe('a response without a browser', () => {
  it.each([
    [25_000, 13, false],
    [25_000, 25, false],
    [25_000, 11, true],
    [25_000, 0, true],
    [4000, 2.5, false],
    [4000, 0.5, true],
    [false, 1.5, false],
    [false, 0.2, true],
  ] as const)('with a pollTimeout of %j, after %d s: early is %j', async (poll, seconds, early) => {
    expect(await isEarly(noneAfter(seconds), poll)).toBe(early);
    expect(await isEarly(noneAfter(seconds, 408), poll)).toBe(early);
  });

  it('counts as a retry if it came early, and resets the count if it waited', async () => {
    const options = { ...forever, pollTimeout: 10_000, retry: { minTimeout: 1, maxTimeout: 1, retries: 1 } };
    const answers = [noneAfter(0), noneAfter(9), noneAfter(0), noneAfter(0), GRANT];
    const { requests, error } = await acquireWith(answers, options);
    expect(requests).toHaveLength(4);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 4 });
    expect(error!.message).toContain('with retry.retries at 1 (4 acquire requests). Increase retry.retries');
  });
});

it.each([0, 1])('waits as long as Retry-After requests, after a response that took %i s', async (seconds) => {
  const answer: Answer = (response) => {
    clock += 1000 * seconds;
    response.writeHead(408, { 'retry-after': '1000' }).end();
  };
  const endTimeout = watchTimeouts();
  const { requests, error } = await acquireWith([answer, GRANT], {
    acquireTimeout: LONG,
    pollTimeout: 1000,
    // Later than any backoff.
    onEvent: ({ type }) => type === 'waiting' && setTimeout(endTimeout, 500),
  });
  expect(requests).toHaveLength(1);
  expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { retryAfter: 1_000_000 } });
});

describe('the backoff', () => {
  // Real time is the subject.
  beforeEach(() => void vi.restoreAllMocks());

  it('grows while the service answers immediately', async () => {
    const { requests, error } = await acquireWith([NONE], {
      retry: { retries: 4, minTimeout: 100, maxTimeout: 10_000, randomize: false },
    });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT' });
    // At 0, 100, 300, 700 and 1500 ms, or later on a busy machine.
    expect(requests).toHaveLength(5);
    const gaps = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
    for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThan(90 * 2 ** index);
  });

  it.each<[string, Answer, object]>([
    ['an AcquireTimeoutError after 204s', NONE, { code: 'ERR_ACQUIRE_TIMEOUT' }],
    ['the error of the service after errors', { status: 503 }, { name: 'PoolServiceError', status: 503 }],
  ])('ends after the given retries, with %s', async (_what, answer, expected) => {
    for (const retries of [0, 1, 3]) {
      const { error, requests } = await acquireWith([answer], { retry: { retries } });
      expect(requests).toHaveLength(retries + 1);
      expect(error).toMatchObject(expected);
    }
  });
});

it('emits an event for each request and for each pause', async () => {
  const { events } = await acquireWith([NONE, { status: 429 }, GRANT], {
    acquireTimeout: 30_000,
    retry: { minTimeout: 20, randomize: false },
  });
  expect(events).toMatchObject([
    { type: 'acquiring', pool: 'pool', attempt: 1 },
    { type: 'waiting', pool: 'pool', attempt: 1 },
    { type: 'acquiring', pool: 'pool', attempt: 2 },
    { type: 'waiting', pool: 'pool', attempt: 2, error: { status: 429 } },
    { type: 'acquiring', pool: 'pool', attempt: 3 },
  ]);
  expect(events[1]).not.toHaveProperty('error');
  const times = events.flatMap((event) => ('waited' in event ? [event.waited] : []));
  expect(times).toStrictEqual(times.toSorted((a, b) => a - b));
  for (const event of events) {
    if (event.type !== 'acquiring') continue;
    expect(event.timeLeft + event.waited).toBe(30_000);
  }
});

describe('a request with an unknown outcome', () => {
  it.each([
    [0, 2],
    [1, 1],
  ])(
    'is repeated at most once per call: %i earlier unknown outcomes, %i requests',
    async (unknownAcquires, expected) => {
      const { requests } = await acquireWith([{ status: 500 }], forever, { unknownAcquires });
      expect(requests).toHaveLength(expected);
    },
  );
});

describe('a request', () => {
  it('asks for a wait in whole seconds that does not exceed the deadline', async () => {
    const outcome = await acquireWith([GRANT], { acquireTimeout: 39_900, pollTimeout: 60_000 });
    expect(waits(outcome)).toEqual([39]);
  });

  it('asks for a wait of one second if less time is left', async () => {
    const answers = [noneAfter(39.1), GRANT];
    const outcome = await acquireWith(answers, { acquireTimeout: 40_000, pollTimeout: 60_000 });
    expect(waits(outcome)).toEqual([40, 1]);
  });

  it('lets the service decide about the wait with pollTimeout: false', async () => {
    const { requests } = await acquireWith([GRANT], { pollTimeout: false });
    expect(requests[0]!.body).not.toHaveProperty('acquire_timeout_seconds');
  });
});

describe('the end of the wait', () => {
  it('reports its duration, and the last error of the service', async () => {
    const endTimeout = watchTimeouts();
    const { error } = await acquireWith([{ status: 503 }, { status: 204 }], {
      acquireTimeout: LONG,
      onEvent: (event) => event.type === 'waiting' && event.attempt === 2 && endTimeout(),
    });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { status: 503 } });
    expect(error!.message).toMatch(
      /in pool "pool" within 7200 s \(\d+ acquire requests?\)\. Increase acquireTimeout/,
    );
    const { error: plain } = await acquireWith([{ status: 204 }], { acquireTimeout: 50 });
    expect(plain!.cause).toBeUndefined();
  });

  it("is the caller's reason after an abort", async () => {
    const caller = new AbortController();
    const onEvent = () => setTimeout(() => caller.abort('left'), 20);
    const { error } = await acquireWith([{ status: 204, delay: 100 }], { signal: caller.signal, onEvent });
    expect(error).toBe('left');
  });

  it('leaves no listener and no timer', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const { signal } = new AbortController();
    await acquireWith([{ status: 503 }, GRANT], { ...forever, signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
