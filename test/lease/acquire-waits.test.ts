import { beforeEach, describe, expect, it, vi } from 'vitest';
import { stopClock, useFastClock } from '../support/fake-clock.js';
import type { Answer } from '../support/fake-service.js';
import { acquireWith, GRANT, LONG, NONE, watchTimeouts, type Outcome } from './support.js';

/** Advances the clock, which stands still, so that no delay of a busy machine counts. */
let pass: (milliseconds: number) => void;

beforeEach(() => void (pass = stopClock()));

/** Answers without a browser after a number of seconds of the stopped clock. */
function noneAfter(seconds: number, status = 204, headers = {}): Answer {
  return (response) => {
    pass(1000 * seconds);
    response.writeHead(status, headers).end();
  };
}

/** The requested wait of each request, in seconds. */
function waits({ requests }: Outcome): unknown[] {
  return requests.map(({ body }) => body?.['acquire_timeout_seconds']);
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
  ] as const)('with a pollTimeout of %j, after %d s: early is %j', async (pollTimeout, seconds, isEarly) => {
    for (const status of [204, 408]) {
      const options = { pollTimeout, retry: { retries: 0 } };
      const { session, error } = await acquireWith([noneAfter(seconds, status), GRANT], options);
      // With `retries: 0`, an early response ends the call.
      expect([session === undefined, error !== undefined]).toEqual([isEarly, isEarly]);
    }
  });

  it('counts as a retry of the whole call if it came early, like a failure, and not if it waited', async () => {
    const options = { retry: { minTimeout: 1, maxTimeout: 1, retries: 2 } };
    const answers = [
      noneAfter(9),
      noneAfter(0),
      noneAfter(9),
      noneAfter(0, 503),
      noneAfter(9),
      noneAfter(0),
      GRANT,
    ];
    const { requests, error } = await acquireWith(answers, options);
    expect(requests).toHaveLength(6);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 6 });
    expect(error!.message).toContain('with retry.retries at 2 (6 acquire requests). Increase retry.retries');
  });

  it.each([0, 1])('is followed by the pause of its Retry-After, also if it took %i s', async (seconds) => {
    const endTimeout = watchTimeouts();
    // More than a timer can count.
    const later = noneAfter(seconds, 408, { 'retry-after': '1000000000' });
    const { requests, error } = await acquireWith([later, GRANT], {
      pollTimeout: 1000,
      // Later than any backoff.
      onEvent: ({ type }) => type === 'waiting' && setTimeout(endTimeout, 200),
    });
    expect(requests).toHaveLength(1);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { retryAfter: 1e12 } });
  });
});

describe('the backoff', () => {
  // Real time is the subject.
  beforeEach(() => void vi.restoreAllMocks());

  it('grows while the service answers immediately', async () => {
    const { requests } = await acquireWith([NONE], {
      retry: { retries: 4, minTimeout: 20, maxTimeout: 10_000, randomize: false },
    });
    // After pauses of 20, 40, 80 and 160 ms, or longer ones on a busy machine.
    expect(requests).toHaveLength(5);
    const gaps = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
    for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThan(18 * 2 ** index);
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

describe('a request', () => {
  it('asks for a wait in whole seconds, at least one, that does not exceed the deadline', async () => {
    for (const [pollTimeout, seconds] of [
      [1, 1],
      [1000, 1],
      [1001, 2],
      [100_000, 100],
    ] as const)
      expect(waits(await acquireWith([GRANT], { pollTimeout }))).toEqual([seconds]);
    const answers = [noneAfter(39.1), GRANT];
    const limited = await acquireWith(answers, { acquireTimeout: 40_900, pollTimeout: 60_000 });
    expect(waits(limited)).toEqual([40, 1]);
  });

  it.each([
    ['pollTimeout: false', { pollTimeout: false }],
    ['no limit', { pollTimeout: Number.POSITIVE_INFINITY, acquireTimeout: Number.POSITIVE_INFINITY }],
  ] as const)('lets the service decide about the wait with %s', async (_how, options) => {
    const { requests } = await acquireWith([NONE, GRANT], options);
    expect(requests).toHaveLength(2);
    for (const { body } of requests) expect(body).not.toHaveProperty('acquire_timeout_seconds');
  });
});

describe('with a clock of which a second takes 100 ms', () => {
  beforeEach(() => void vi.restoreAllMocks());
  useFastClock();

  it('follows x-should-retry, whatever the status means elsewhere', async () => {
    const retry = { minTimeout: 1, maxTimeout: 1 };
    const again = { status: 400, headers: { 'x-should-retry': 'true' } };
    expect((await acquireWith([again, GRANT], { retry })).requests).toHaveLength(2);
    const never = { status: 429, headers: { 'x-should-retry': 'false' } };
    expect((await acquireWith([never, GRANT], { retry })).requests).toHaveLength(1);
  });

  it.each([408, 429])('Retry-After replaces the backoff, after a %i', async (status) => {
    const retry = { minTimeout: LONG, maxTimeout: LONG };
    const { requests } = await acquireWith([{ status, headers: { 'retry-after': '1' } }, GRANT], { retry });
    expect(requests[1]!.at - requests[0]!.at).toBeGreaterThan(95);
  });

  it('a request waits for the response longer than the service waits', async () => {
    const late: Answer = { status: 204, delay: 150 };
    const { requests, events } = await acquireWith([late, GRANT], { pollTimeout: 1000 });
    expect(requests).toHaveLength(2);
    expect(events.map(({ type }) => type)).not.toContain('outcome-unknown');
  });
});
