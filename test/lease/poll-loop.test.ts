import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Answer } from '../support/fake-service.js';
import { acquireWith, GRANT, waits } from './support.js';

const now = performance.now.bind(performance);
let passed = 0;

beforeEach(async () => {
  passed = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** No browser, after a wait of so many seconds, which pass on the clock and nowhere else. */
function noneAfter(seconds: number, status = 204): Answer {
  return (response) => {
    passed += 1000 * seconds;
    response.writeHead(status).end();
  };
}

const retry = { minTimeout: 40, maxTimeout: 40, randomize: false };
const forever = { acquireTimeout: Number.POSITIVE_INFINITY, retry };

/** The pauses before each further request. */
async function pauses(answers: Answer[], pollTimeout: number | false): Promise<number[]> {
  const { events, session } = await acquireWith([...answers, GRANT], { ...forever, pollTimeout });
  expect(session?.session_id).toBe('session-1');
  return events.flatMap((event) => (event.type === 'waiting' ? [event.delay] : []));
}

describe('an answer that there is no browser', () => {
  it.each([
    [25_000, 13, 0],
    [25_000, 25, 0],
    [25_000, 11, 40],
    [25_000, 0, 40],
    [4000, 2.5, 0],
    [4000, 0.5, 40],
    [false, 1.5, 0],
    [false, 0.2, 40],
  ] as const)(
    'with a pollTimeout of %j, after %d s, is followed by a pause of %i ms',
    async (poll, seconds, pause) => {
      expect(await pauses([noneAfter(seconds)], poll)).toEqual([pause]);
    },
  );

  it('that came too soon counts as a retry, one that waited does not', async () => {
    const plan = { ...forever, pollTimeout: 10_000, retry: { ...retry, retries: 1 } };
    const { requests, error } = await acquireWith(
      [noneAfter(9), noneAfter(0), noneAfter(9), noneAfter(0)],
      plan,
    );
    expect(requests).toHaveLength(4);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 4 });
    expect(error!.message).toContain('within 1 retries');
  });
});

describe('a Retry-After', () => {
  const later =
    (seconds: number): Answer =>
    (response) => {
      passed += 1000 * seconds;
      response.writeHead(408, { 'retry-after': '1' }).end();
    };

  it('is added to the back-off, also after an answer that waited', async () => {
    expect(await pauses([later(0)], 10_000)).toEqual([1040]);
    expect(await pauses([later(9)], 10_000)).toEqual([1040]);
  });
});

describe('the event of a pause', () => {
  it('tells no longer a pause than there is time', async () => {
    const { events } = await acquireWith([{ status: 503, headers: { 'retry-after': '1000' } }], {
      acquireTimeout: 200,
      retry,
    });
    const waiting = events.find((event) => event.type === 'waiting');
    expect(waiting!.delay).toBeLessThanOrEqual(200);
    expect(waiting!.delay).toBeGreaterThan(0);
    expect(Number.isInteger(waiting!.delay)).toBe(true);
  });
});

describe('a request whose outcome is not known', () => {
  it.each([
    [undefined, 2],
    [0, 2],
    [1, 1],
  ])('is the last but one, if the call had %j before', async (unknownOutcomes, expected) => {
    const { requests } = await acquireWith([{ status: 500 }], {
      ...forever,
      ...(unknownOutcomes !== undefined && { unknownOutcomes }),
    });
    expect(requests).toHaveLength(expected);
  });
});

it('adds the note of its caller to the error when time is up, and no other', async () => {
  const plan = { acquireTimeout: 50, retry };
  const plain = await acquireWith([{ status: 204 }], plan);
  expect(plain.error!.message).toMatch(/given back\.$/);
  const noted = await acquireWith([{ status: 204 }], { ...plan, note: 'A note.' });
  expect(noted.error!.message).toMatch(/given back\. A note\.$/);
});

describe('a request', () => {
  it('asks to wait no longer than there is time, in whole seconds', async () => {
    const outcome = await acquireWith([GRANT], { acquireTimeout: 3900, pollTimeout: 10_000 });
    expect(waits(outcome)).toEqual([3]);
  });

  it('leaves the wait to the service where pollTimeout is false', async () => {
    const { requests } = await acquireWith([GRANT], { pollTimeout: false });
    expect(requests.map(({ body }) => body)).toEqual([{}]);
  });
});

describe('the end of the wait', () => {
  it('tells how long it was, and what the service said last of itself', async () => {
    const { error } = await acquireWith([{ status: 503 }, { status: 204 }], { acquireTimeout: 150, retry });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { status: 503 } });
    expect(error!.message).toContain('within 150 ms');
    const { error: plain } = await acquireWith([{ status: 204 }], { acquireTimeout: 50, retry });
    expect(plain!.cause).toBeUndefined();
  });

  it("is the caller's reason after an abort", async () => {
    const caller = new AbortController();
    const onEvent = () => setTimeout(() => caller.abort('left'), 20);
    const { error } = await acquireWith([{ status: 204, delay: 100 }], { signal: caller.signal, onEvent });
    expect(error).toBe('left');
  });

  it('leaves no listener and no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const { signal } = new AbortController();
    await acquireWith([{ status: 503 }, GRANT], { ...forever, signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
