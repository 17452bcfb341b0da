import { beforeAll, describe, expect, it, vi } from 'vitest';
import { backoffDelay, checkRetryOptions } from '../../src/lease/backoff.js';
import type { RetryOptions } from '../../src/lease/retry-rules.js';
import { InvalidOptionError } from '../../src/shared/errors.js';
import type { Answer } from '../support/fake-service.js';
import { acquireWith, GRANT, NONE, waitAsAsked } from './support.js';

// Loads what is loaded on first use, so that the short times below are those of requests.
beforeAll(() => acquireWith([GRANT]));

it('backs off by full jitter: any time from nothing to a limit that doubles up to its maximum', () => {
  const backoff = checkRetryOptions({ minTimeout: 100, maxTimeout: 1000 });
  for (const [random, expected] of [
    [0, [0, 0, 0, 0, 0]],
    [0.5, [50, 100, 200, 400, 500]],
    [1, [100, 200, 400, 800, 1000]],
  ] as const) {
    vi.spyOn(Math, 'random').mockReturnValue(random);
    expect([1, 2, 3, 4, 5].map((failures) => backoffDelay(backoff, failures))).toStrictEqual(expected);
  }
});

it('backs off without chance when told so, and by the factor given', () => {
  const backoff = checkRetryOptions({ minTimeout: 10, maxTimeout: 500, factor: 3, randomize: false });
  expect([1, 2, 3, 4, 5].map((failures) => backoffDelay(backoff, failures))).toStrictEqual([
    10, 30, 90, 270, 500,
  ]);
});

it('stays finite after however many failures', () => {
  const backoff = checkRetryOptions({ randomize: false });
  expect(backoffDelay(backoff, 1e6)).toBe(backoff.maxTimeout);
});

it.each<[keyof RetryOptions, unknown]>([
  ['retries', -1],
  ['retries', Number.NaN],
  ['retries', '3'],
  ['factor', -1],
  ['minTimeout', 'soon'],
  ['maxTimeout', Number.NaN],
  ['randomize', 1],
])('refuses retry.%s %j', (option, value) => {
  expect(() => checkRetryOptions({ [option]: value })).toThrow(InvalidOptionError);
  expect(() => checkRetryOptions({ [option]: value })).toThrow(`retry.${option} must be`);
});

it('refuses unknown retry options and names those there are', () => {
  expect(() => checkRetryOptions({ forever: true } as object)).toThrow(
    /retry has no option forever.*retries, factor, minTimeout, maxTimeout, randomize/,
  );
});

it.each([[null], [5], [true], [[]]])('refuses %j as retry options', (options) => {
  expect(() => checkRetryOptions(options as object)).toThrow(InvalidOptionError);
});

describe.concurrent('acquireSession', () => {
  it('backs off from a service that answers at once', async () => {
    const { requests, error, events } = await acquireWith([NONE], {
      acquireTimeout: 2000,
      retry: { minTimeout: 100, maxTimeout: 10_000, randomize: false },
    });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT' });
    // At 0, 100, 300, 700 and 1500 ms.
    expect(requests.length).toBeGreaterThan(2);
    expect(requests.length).toBeLessThanOrEqual(5);
    const delays = events.flatMap((event) => (event.type === 'waiting' ? [event.delay] : []));
    expect(delays.slice(0, 2)).toStrictEqual([100, 200]);
    const gaps = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
    for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThan(0.9 * delays[index]!);
  });

  it('stays modest with the default back-off', async () => {
    const { requests } = await acquireWith([{ status: 503 }], {
      acquireTimeout: 1000,
      retry: { minTimeout: undefined, maxTimeout: undefined },
    });
    expect(requests.length).toBeLessThan(20);
  });

  it.each<[string, Answer, object]>([
    ['an AcquireTimeoutError after 204s', NONE, { code: 'ERR_ACQUIRE_TIMEOUT' }],
    ['the error of the service after errors', { status: 503 }, { name: 'PoolServiceError', status: 503 }],
  ])('stops after the retries given, with %s', async (_what, answer, expected) => {
    for (const retries of [0, 1, 3]) {
      const { error, requests } = await acquireWith([answer], { retry: { retries } });
      expect(requests).toHaveLength(retries + 1);
      expect(error).toMatchObject(expected);
    }
  });

  it.each([0, 1])('does not count as one of %i retries what waited as asked', async (retries) => {
    const polite = waitAsAsked({ status: 204 });
    const { session, requests } = await acquireWith([polite, polite, GRANT], {
      pollTimeout: 1000,
      retry: { retries },
    });
    expect(requests).toHaveLength(3);
    expect(session?.session_id).toBe('session-1');
  });

  it('begins its back-off anew after an answer that waited as asked', async () => {
    const answers = [NONE, NONE, waitAsAsked({ status: 204 }), NONE, GRANT];
    const { events } = await acquireWith(answers, {
      pollTimeout: 1000,
      retry: { minTimeout: 20, maxTimeout: 1000, randomize: false },
    });
    const delays = events.flatMap((event) => (event.type === 'waiting' ? [event.delay] : []));
    expect(delays).toStrictEqual([20, 40, 0, 20]);
  });

  it('tells of each request and of each pause', async () => {
    const { events } = await acquireWith([NONE, { status: 429 }, GRANT], {
      acquireTimeout: 30_000,
      retry: { minTimeout: 20, randomize: false },
    });
    expect(events).toMatchObject([
      { type: 'acquiring', pool: 'pool', attempt: 1 },
      { type: 'waiting', pool: 'pool', attempt: 1, delay: 20 },
      { type: 'acquiring', pool: 'pool', attempt: 2 },
      { type: 'waiting', pool: 'pool', attempt: 2, delay: 40, error: { status: 429 } },
      { type: 'acquiring', pool: 'pool', attempt: 3 },
    ]);
    expect(events[1]).not.toHaveProperty('error');
    const times = events.flatMap((event) => ('waited' in event ? [event.waited] : []));
    expect(times).toStrictEqual(times.toSorted((a, b) => a - b));
    for (const event of events) {
      if (event.type !== 'acquiring') continue;
      expect(event.timeLeft + event.waited).toBeGreaterThan(29_900);
      expect(event.timeLeft + event.waited).toBeLessThan(30_100);
    }
  });
});
