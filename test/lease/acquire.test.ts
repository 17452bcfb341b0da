import { describe, expect, it, vi } from 'vitest';
import { isPoolServiceError, type RunEvent } from '../../src/index.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, session, TOKEN, UNREACHABLE, type Answer } from '../support/fake-service.js';
import { breakOff, rejection, reset } from '../service/support.js';
import { acquire, acquireWith, GRANT, NONE, waits } from './support.js';

const BODY = { code: 'some_code', message: 'a message' };

describe.concurrent('an acquire', () => {
  it('returns the session of the first request', async () => {
    const tags = { a: 'b', 'pooled-browser-lease': expect.any(String) as string };
    const request = { name: 'n', tags, start_url: 'https://example.com/' };
    const options = { name: 'n', tags: { a: 'b' }, startUrl: 'https://example.com/' };
    const { session, requests, events, released } = await acquireWith([GRANT], options);
    expect(session?.session_id).toBe('session-1');
    expect(requests.map(({ body }) => body)).toStrictEqual([{ ...request, acquire_timeout_seconds: 10 }]);
    expect(events).toMatchObject([{ type: 'acquiring', pool: 'pool', attempt: 1 }]);
    expect(released).toStrictEqual([]);
  });

  it('repeats the request after a 204', async () => {
    const { session, requests } = await acquireWith([NONE, NONE, GRANT]);
    expect(session?.session_id).toBe('session-1');
    expect(requests).toHaveLength(3);
  });

  it.each([408, 409, 429, 503, 504])(
    'repeats the request after a %i, with or without a body',
    async (status) => {
      const { session, requests, events } = await acquireWith([{ status }, { status, json: BODY }, GRANT]);
      expect(session?.session_id).toBe('session-1');
      expect(requests).toHaveLength(3);
      const waiting = events.filter(({ type }) => type === 'waiting');
      expect(waiting).toMatchObject([
        { attempt: 1, error: { status, code: `http_${status}` } },
        { attempt: 2, error: { status, code: 'some_code' } },
      ]);
    },
  );

  it.each([400, 401, 403, 404, 422])(
    'fails immediately after a %i, with the code of the service',
    async (status) => {
      const { error, requests } = await acquireWith([{ status, json: BODY }, GRANT]);
      expect(isPoolServiceError(error)).toBe(true);
      expect(error).toMatchObject({ status, code: 'some_code' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each(['conflict', 'name_taken', 'name_unavailable', 'name_not_available', undefined])(
    'fails immediately after a 409 with the code %s if the lease has a name',
    async (code) => {
      const answer: Answer = { status: 409, ...(code && { json: { code, message: 'taken' } }) };
      const { error, requests } = await acquireWith([answer, GRANT], { name: 'n' });
      expect(error).toMatchObject({ status: 409, code: code ?? 'http_409' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each(['no_browser_available', 'pool_exhausted', 'acquire_timeout'])(
    'repeats the request after a 409 with the code %s, also with a name',
    async (code) => {
      const reason = { code, message: 'none' };
      const bodies = [reason, { ...BODY, inner_error: reason }, { ...BODY, details: [BODY, reason] }];
      const answers = bodies.map((json): Answer => ({ status: 409, json }));
      const { session, requests } = await acquireWith([...answers, NONE, GRANT], { name: 'n' });
      expect(session?.session_id).toBe('session-1');
      expect(requests).toHaveLength(5);
    },
  );

  it.each<[string, Answer]>([
    ['a reset', reset],
    ['a 500', { status: 500, json: BODY }],
    ['a 502 page', { status: 502, text: '<html>', headers: { 'content-type': 'text/html' } }],
  ])('repeats the request once, not twice, if the outcome is unknown after %s', async (_what, answer) => {
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
  ])('repeats the request at most once after a 200 with %s', async (_what, answer) => {
    const { error, requests, events } = await acquireWith([answer]);
    expect(error).toMatchObject({ name: 'PoolResponseError' });
    expect(requests.length).toBeLessThanOrEqual(2);
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(requests.length);
  });

  it('releases a broken session, and repeats the request once', async () => {
    const broken: Answer = { status: 200, json: session({ session_id: 'broken', cdp_ws_url: null }) };
    const recovered = await acquireWith([broken, NONE, GRANT]);
    expect(recovered.session?.session_id).toBe('session-1');
    expect(recovered.released).toStrictEqual(['broken']);
    const failed = await acquireWith([broken, NONE, broken, GRANT]);
    expect(failed.error).toMatchObject({ name: 'PoolResponseError', sessionId: 'broken' });
    expect(failed.released).toStrictEqual(['broken', 'broken']);
    for (const { events } of [recovered, failed])
      expect(events.filter(({ type }) => type === 'outcome-unknown')).toStrictEqual([]);
  });

  it('does not repeat the request with the name of a broken session', async () => {
    const broken: Answer = { status: 200, json: session({ session_id: 'broken', cdp_ws_url: null }) };
    const { error, requests, released } = await acquireWith([broken, GRANT], { name: 'n' });
    expect(error).toMatchObject({ name: 'PoolResponseError', sessionId: 'broken' });
    expect(requests).toHaveLength(1);
    expect(released).toStrictEqual(['broken']);
  });

  it.each([409, 422])(
    'explains a %i: a request whose response was lost may have leased the name',
    async (status) => {
      const conflict: Answer = { status, json: { code: 'name_taken', message: 'in use' } };
      const { error, events } = await acquireWith([reset, conflict, GRANT], { name: 'mine' });
      expect(error).toMatchObject({
        name: 'LeaseNameTakenError',
        code: 'ERR_LEASE_NAME_TAKEN',
        leaseName: 'mine',
        pool: 'pool',
        attempts: 2,
        cause: { status, code: 'name_taken' },
      });
      expect(events.filter(({ type }) => type === 'outcome-unknown')).toMatchObject([{ name: 'mine' }]);
    },
  );

  it('passes a 422 on unchanged without a name, or without a lost response', async () => {
    const conflict: Answer = { status: 422, json: { code: 'invalid', message: 'no' } };
    expect((await acquireWith([reset, conflict])).error).toMatchObject({ code: 'invalid' });
    const named = await acquireWith([conflict], { name: 'mine' });
    expect(named.error).toMatchObject({ code: 'invalid' });
  });

  it('repeats the request while the service is unreachable', async () => {
    // Its own address: unreachableTimeout begins with the first failure of any test at the same one.
    const pool = new BrowserPool('pool', { baseUrl: `${UNREACHABLE}/acquire`, token: TOKEN });
    const events: RunEvent[] = [];
    const options = {
      acquireTimeout: 60_000,
      pollTimeout: 30_000,
      retry: { retries: 3, minTimeout: 10, maxTimeout: 20 },
      onEvent: (event: RunEvent) => events.push(event),
    };
    const error = await rejection(acquire(pool, options));
    await pool.close();
    expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_UNREACHABLE' });
    expect(events.filter(({ type }) => type === 'acquiring')).toHaveLength(4);
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toStrictEqual([]);
  });

  it('waits for the response longer than the service waits', async () => {
    const late: Answer = { status: 200, json: session(), delay: 2500 };
    const outcome = await acquireWith([late], { pollTimeout: 1000 });
    expect(outcome.session?.session_id).toBe('session-1');
    expect(waits(outcome)).toStrictEqual([1]);
  });
});

it.each(Array.from({ length: 16 }, (_, ticks) => ticks))(
  'returns or releases a browser if the caller aborts %i microtasks after the response',
  async (ticks) => {
    await using service = await FakeService.start();
    const pool = new BrowserPool('pool', service.options);
    service.script('acquire', GRANT);
    service.script('release', { status: 204 });
    const caller = new AbortController();
    const { acquire: send } = pool;
    vi.spyOn(pool, 'acquire').mockImplementation(async (...parameters) => {
      const session = await send.apply(pool, parameters);
      void (async () => {
        for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
        caller.abort('left');
      })();
      return session;
    });
    const session = await acquire(pool, { signal: caller.signal }).catch(() => undefined);
    await pool.close();
    expect([...(session ? [session.session_id] : []), ...service.released]).toEqual(['session-1']);
  },
);
