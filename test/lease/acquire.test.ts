import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool, runOf, withPooledBrowser } from '../../src/index.js';
import { kernel } from '../../src/services.js';
import { PlayedLease } from '../support/played-lease.js';
import { breakOff, rejection, reset } from '../pool/support.js';
import { found, session, type Answer } from '../support/fake-service.js';
import { acquireWith, after, answerLater, GRANT, LONG, NONE, useClock, watchTimeouts } from './support.js';
import { useFastClock } from '../support/fake-clock.js';

useFastClock();

const BODY = { code: 'some_code', message: 'a message' };
const BROKEN: Answer = { status: 200, json: session({ session_id: 'broken', cdp_ws_url: null }) };

describe('a request without a browser', () => {
  it.each([408, 409, 429, 503, 504])('is repeated after a %i, with or without a body', async (status) => {
    const {
      session: leased,
      requests,
      events,
    } = await acquireWith([{ status }, { status, json: BODY }, GRANT]);
    expect(leased?.session_id).toBe('session-1');
    expect(requests).toHaveLength(3);
    expect(events.filter(({ type }) => type === 'waiting')).toMatchObject([
      { attempt: 1, error: { status, code: `http_${status}` } },
      { attempt: 2, error: { status, code: 'some_code' } },
    ]);
  });

  it.each([400, 401, 403, 404, 422])('is final after a %i, with the code of the service', async (status) => {
    const json = { ...BODY, details: [{ code: 'invalid_input', message: 'tags: too long' }] };
    const { error, requests } = await acquireWith([{ status, json }, GRANT]);
    expect(error).toMatchObject({
      name: 'PoolServiceError',
      status,
      code: 'some_code',
      details: json.details,
    });
    expect(requests).toHaveLength(1);
  });

  it('is reported by an event, like each request and each pause', async () => {
    const { events } = await acquireWith([NONE, { status: 429 }, GRANT], { acquireTimeout: 30_000 });
    expect(events).toMatchObject([
      { type: 'acquiring', pool: 'test', attempt: 1 },
      { type: 'waiting', pool: 'test', attempt: 1 },
      { type: 'acquiring', pool: 'test', attempt: 2 },
      { type: 'waiting', pool: 'test', attempt: 2, error: { status: 429 } },
      { type: 'acquiring', pool: 'test', attempt: 3 },
    ]);
    expect(events[1]).not.toHaveProperty('error');
    const times = events.flatMap((event) => ('waited' in event ? [event.waited] : []));
    expect(times).toStrictEqual(times.toSorted((a, b) => a - b));
    // The clock does not stand still between the two.
    for (const event of events)
      if (event.type === 'acquiring') {
        expect(event.timeLeft + event.waited).toBeLessThanOrEqual(30_000);
        expect(event.timeLeft).toBeGreaterThan(0);
      }
  });
});

describe('a conflict (409) for a lease with a name', () => {
  it.each(['conflict', 'name_taken', 'name_unavailable', 'name_not_available', undefined])(
    'is final with the code %s',
    async (code) => {
      const answer: Answer = { status: 409, ...(code && { json: { code, message: 'taken' } }) };
      const { error, requests } = await acquireWith([answer, GRANT], { name: 'n' });
      expect(error).toMatchObject({ status: 409, code: code ?? 'http_409' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each(['no_browser_available', 'pool_exhausted', 'acquire_timeout'])(
    'means that no browser is available with the code %s, wherever the code is',
    async (code) => {
      const reason = { code, message: 'none' };
      const bodies = [reason, { ...BODY, inner_error: reason }, { ...BODY, details: [BODY, reason] }];
      const answers = bodies.map((json): Answer => ({ status: 409, json }));
      const { session: leased, requests } = await acquireWith([...answers, NONE, GRANT], { name: 'n' });
      expect(leased?.session_id).toBe('session-1');
      expect(requests).toHaveLength(5);
    },
  );

  it.each([409, 422])('is explained after a lost response, like a %i', async (status) => {
    const conflict: Answer = { status, json: { code: 'name_taken', message: 'in use' } };
    const { error, events } = await acquireWith([reset, conflict, GRANT], { name: 'mine' });
    expect(error).toMatchObject({
      name: 'LeaseNameTakenError',
      code: 'ERR_LEASE_NAME_TAKEN',
      leaseName: 'mine',
      pool: 'test',
      attempts: 2,
      cause: { status, code: 'name_taken' },
    });
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toMatchObject([{ name: 'mine' }]);
  });

  it('is explained by the service without a name, or without a lost response', async () => {
    const conflict: Answer = { status: 422, json: { code: 'invalid', message: 'no' } };
    expect((await acquireWith([reset, conflict])).error).toMatchObject({ code: 'invalid' });
    expect((await acquireWith([conflict], { name: 'mine' })).error).toMatchObject({ code: 'invalid' });
    const forbidden: Answer = { status: 403, json: BODY };
    expect((await acquireWith([reset, forbidden], { name: 'mine' })).error).toMatchObject({ status: 403 });
  });
});

describe('a request with an unknown outcome', () => {
  it.each<[string, Answer]>([
    ['a reset', reset],
    ['a 500', { status: 500, json: BODY }],
    ['a 502 page', { status: 502, text: '<html>', headers: { 'content-type': 'text/html' } }],
  ])('is reported, and repeated once, not twice: %s', async (_what, answer) => {
    const recovered = await acquireWith([answer, NONE, GRANT]);
    expect(recovered.session?.session_id).toBe('session-1');
    expect(recovered.requests).toHaveLength(3);
    expect(recovered.events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(1);
    const failed = await acquireWith([answer, NONE, answer, GRANT]);
    expect(failed.error?.name).toMatch(/PoolConnectionError|PoolServiceError/);
    expect(failed.requests).toHaveLength(3);
    expect(failed.events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(2);
  });

  it.each<[string, Answer]>([
    ['a page', { status: 200, text: '<html>', headers: { 'content-type': 'text/html' } }],
    ['a body that breaks off', breakOff('{"created_at": "20')],
  ])('is not repeated after a 200 with %s', async (_what, answer) => {
    const { error, requests, events } = await acquireWith([answer, GRANT]);
    expect(error).toMatchObject({ name: 'PoolResponseError' });
    expect(requests).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(1);
  });

  it('is repeated as often as a search finds its browser, which is released', async () => {
    await using played = await PlayedLease.start();
    played.service.script('search', found('lost-1'), found('lost-2'));
    played.service.script('acquire', reset, reset, { status: 200, json: played.session() });
    await using pool = new BrowserPool('test', { ...played.service.options, service: kernel });
    const { run } = await played.run(undefined, { replays: 'off' }, pool);
    expect(run).toMatchObject({ value: 'value', acquireAttempts: 3, unknownAcquires: 0 });
    expect(played.service.released).toEqual(['lost-1', 'lost-2', 'session-1']);
    expect(played.told('grant-orphaned')).toMatchObject([{ sessionId: 'lost-1' }, { sessionId: 'lost-2' }]);
    expect(played.told('outcome-unknown')).toEqual([]);
  });

  it('is searched for while the service can still lease its browser, which is released', async () => {
    await using played = await PlayedLease.start();
    played.service.script('search', found(), found(), found(), found('late'));
    played.service.script('acquire', reset, { status: 200, json: played.session() });
    await using pool = new BrowserPool('test', { ...played.service.options, service: kernel });
    const { run } = await played.run(undefined, { replays: 'off' }, pool);
    expect(run).toMatchObject({ value: 'value', acquireAttempts: 2, unknownAcquires: 1 });
    expect(played.told('outcome-unknown')).toHaveLength(1);
    await expect.poll(() => played.service.released).toEqual(['session-1', 'late']);
    expect(played.told('grant-orphaned')).toMatchObject([{ sessionId: 'late' }]);
    await sleep(100);
    expect(played.service.of('search')).toHaveLength(4);
  });

  it('is searched for once more when the pool is closed', async () => {
    await using played = await PlayedLease.start();
    let isClosing = false;
    played.service.script('search', (...request) => found(...(isClosing ? ['late'] : []))(...request));
    played.service.script('acquire', reset, { status: 401 });
    const pool = new BrowserPool('test', { ...played.service.options, service: kernel });
    const { run } = await played.run(undefined, {}, pool);
    expect(run).toMatchObject({ unknownAcquires: 1 });
    isClosing = true;
    await pool.close();
    expect(played.service.released).toEqual(['late']);
  });
});

it.each([undefined, () => Promise.reject(new Error('mine'))])(
  'the events decide nothing: the same requests follow with the listener %s',
  async (onEvent) => {
    await using played = await PlayedLease.start();
    const { pool, connector, service } = played;
    const grant: Answer = { status: 200, json: played.session() };
    service.script('acquire', reset, BROKEN, { status: 503 }, reset, grant);
    const options = {
      connector,
      retry: { minTimeout: 1 },
      replays: 'off',
      ...(onEvent && { onEvent }),
    } as const;
    const run = runOf(await rejection(withPooledBrowser(pool, () => {}, options)));
    expect(run).toMatchObject({ acquireAttempts: 4, unknownAcquires: 2 });
    await pool.close();
    expect(service.released).toEqual(['broken']);
  },
);

describe('a broken session', () => {
  it('is released, and the request is repeated once', async () => {
    const recovered = await acquireWith([BROKEN, NONE, GRANT]);
    expect(recovered.session?.session_id).toBe('session-1');
    expect(recovered.released).toStrictEqual(['broken']);
    const failed = await acquireWith([BROKEN, NONE, BROKEN, GRANT]);
    expect(failed.error).toMatchObject({ name: 'PoolResponseError', sessionId: 'broken' });
    expect(failed.requests).toHaveLength(3);
    expect(failed.released).toStrictEqual(['broken', 'broken']);
  });

  it('of a lease with a name is released, and the request is not repeated', async () => {
    const { error, requests, released } = await acquireWith([BROKEN, GRANT], { name: 'n' });
    expect(error).toMatchObject({ name: 'PoolResponseError', sessionId: 'broken' });
    expect(requests).toHaveLength(1);
    expect(released).toStrictEqual(['broken']);
  });
});

describe('acquireTimeout', () => {
  it('ends the call, with its duration and the last error of the service; runOf returns the run', async () => {
    const [endTimeout, advance] = [watchTimeouts(), useClock()];
    const { late, settle } = answerLater(NONE);
    const waited = after(() => advance(9000), NONE);
    const answer = after(() => (advance(LONG), endTimeout()), late);
    const outcome = await acquireWith([{ status: 503, json: BODY }, waited, answer], {}, settle);
    const { error, requests, run } = outcome;
    expect(requests).toHaveLength(3);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', pool: 'test', attempts: 3 });
    expect(error!['waited']).toBeGreaterThanOrEqual(LONG);
    expect(error!['waited']).toBe(error!['elapsed']);
    expect(error!.cause).toMatchObject({ status: 503, code: 'some_code' });
    // Not with the error, because a later request was answered.
    expect(error!.message).toMatch(
      /^No browser .* in pool "test" within 7200 s \(3 acquire requests\)\. Increase acquireTimeout/,
    );
    expect(runOf(error)).toBe(run);
    // The service may still lease a browser to the last request.
    expect(run).toMatchObject({ acquireAttempts: 3, unknownAcquires: 1, replays: [], replayStatus: 'off' });
    expect(run).not.toHaveProperty('session');
  });

  it('has no cause if the service just had no browser', async () => {
    const endTimeout = watchTimeouts();
    const { error } = await acquireWith([after(endTimeout, { status: 204, delay: 50 })]);
    expect(error!.message).toMatch(/\(1 acquire request\)/);
    expect(error!.cause).toBeUndefined();
  });

  it.each<[string, Answer, string[], string[]]>([
    [
      'a browser, which is released',
      { status: 200, json: session() },
      ['grant-orphaned', 'released'],
      ['session-1'],
    ],
    ['no response, which is reported', reset, ['outcome-unknown'], []],
    ['no browser', { status: 503 }, [], []],
  ])('applies to a request that later gets %s', async (_what, answer, types, ids) => {
    const endTimeout = watchTimeouts();
    const { late, settle } = answerLater(answer);
    const { error, run, released, events } = await acquireWith([after(endTimeout, late)], {}, settle);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 1 });
    expect(run).toMatchObject({ unknownAcquires: 1 });
    expect(released).toStrictEqual(ids);
    expect(events.map(({ type }) => type)).toStrictEqual(['acquiring', ...types]);
  });
});

describe('an abort', () => {
  it('during a request rejects with its reason, and a browser that is leased later is released', async () => {
    const caller = new AbortController();
    const reason = new Error('enough');
    const { late, settle } = answerLater({ status: 200, json: session() });
    const answer = after(() => caller.abort(reason), late);
    const { signal } = caller;
    const { error, run, requests, released } = await acquireWith([answer], { signal }, settle);
    expect(error).toBe(reason);
    expect(run).toMatchObject({ acquireAttempts: 1, unknownAcquires: 1 });
    expect(requests).toHaveLength(1);
    expect(released).toStrictEqual(['session-1']);
  });

  it.each([
    ['an error', { status: 503 }],
    ['Retry-After', { status: 503, headers: { 'retry-after': '60' } }],
  ])('during the pause after %s rejects with its reason', async (_what, answer) => {
    const caller = new AbortController();
    const { error, requests } = await acquireWith([answer, GRANT], {
      signal: caller.signal,
      retry: { minTimeout: 60_000, maxTimeout: 60_000 },
      onEvent: ({ type }) => void (type === 'waiting' && setImmediate(() => caller.abort('left'))),
    });
    expect(error).toBe('left');
    expect(requests).toHaveLength(1);
  });

  it('that does not come leaves no listener and no timer', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const { signal } = new AbortController();
    await acquireWith([{ status: 503 }, GRANT], { acquireTimeout: Number.POSITIVE_INFINITY, signal });
    await acquireWith([GRANT], { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
