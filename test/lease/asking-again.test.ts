import { describe, expect, it } from 'vitest';
import type { AcquireEvent } from '../../src/lease/acquire-events.js';
import { acquireSession } from '../../src/lease/acquire-session.js';
import { checkRetryOptions } from '../../src/lease/backoff.js';
import { isPoolServiceError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, session, type Answer } from '../support/fake-service.js';
import { breakOff, rejection, reset } from '../service/support.js';
import { acquireWith, GRANT, NONE, waitAsAsked, waits } from './support.js';

const BODY = { code: 'some_code', message: 'a message' };

describe.concurrent('acquireSession', () => {
  it('hands out what the first request brings', async () => {
    const request = { name: 'n', tags: { a: 'b' }, start_url: 'https://example.com/' };
    const { session, requests, events, released } = await acquireWith([GRANT], { request });
    expect(session?.session_id).toBe('session-1');
    expect(requests.map(({ body }) => body)).toStrictEqual([{ ...request, acquire_timeout_seconds: 10 }]);
    expect(events).toMatchObject([{ type: 'acquiring', pool: 'pool', attempt: 1 }]);
    expect(released).toStrictEqual([]);
  });

  it('asks again after a 204', async () => {
    const { session, requests } = await acquireWith([NONE, NONE, GRANT]);
    expect(session?.session_id).toBe('session-1');
    expect(requests).toHaveLength(3);
  });

  it.each([408, 409, 429, 503, 504])('asks again after a %i, with or without a body', async (status) => {
    const { session, requests, events } = await acquireWith([{ status }, { status, json: BODY }, GRANT]);
    expect(session?.session_id).toBe('session-1');
    expect(requests).toHaveLength(3);
    const waiting = events.filter(({ type }) => type === 'waiting');
    expect(waiting).toMatchObject([
      { attempt: 1, error: { status, code: `http_${status}` } },
      { attempt: 2, error: { status, code: 'some_code' } },
    ]);
  });

  it.each([400, 401, 403, 404, 422])(
    'fails at once after a %i, with what the service said',
    async (status) => {
      const { error, requests } = await acquireWith([{ status, json: BODY }, GRANT]);
      expect(isPoolServiceError(error)).toBe(true);
      expect(error).toMatchObject({ status, code: 'some_code' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each(['conflict', 'name_taken', 'name_unavailable', 'name_not_available', undefined])(
    'fails at once after a 409 with the code %s when the lease has a name, which may be taken',
    async (code) => {
      const answer: Answer = { status: 409, ...(code && { json: { code, message: 'taken' } }) };
      const { error, requests } = await acquireWith([answer, GRANT], { request: { name: 'n' } });
      expect(error).toMatchObject({ status: 409, code: code ?? 'http_409' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each(['no_browser_available', 'pool_exhausted', 'acquire_timeout'])(
    'asks again after a 409 with the code %s even when the lease has a name',
    async (code) => {
      const answer: Answer = { status: 409, json: { code, message: 'none' } };
      const { session, requests } = await acquireWith([answer, GRANT], { request: { name: 'n' } });
      expect(session?.session_id).toBe('session-1');
      expect(requests).toHaveLength(2);
    },
  );

  it.each<[string, Answer]>([
    ['a reset', reset],
    ['a 500', { status: 500, json: BODY }],
    ['a 502 page', { status: 502, text: '<html>', headers: { 'content-type': 'text/html' } }],
  ])('asks once more, not twice, when %s leaves open what happened', async (_what, answer) => {
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
  ])('asks at most once more after a 200 with %s', async (_what, answer) => {
    const { error, requests, events } = await acquireWith([answer]);
    expect(error).toMatchObject({ name: 'PoolResponseError' });
    expect(requests.length).toBeLessThanOrEqual(2);
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(requests.length);
  });

  it('gives a broken session back, and asks for another, once', async () => {
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

  it('does not ask again under a name that the broken session still has', async () => {
    const broken: Answer = { status: 200, json: session({ session_id: 'broken', cdp_ws_url: null }) };
    const { error, requests, released } = await acquireWith([broken, GRANT], { request: { name: 'n' } });
    expect(error).toMatchObject({ name: 'PoolResponseError', sessionId: 'broken' });
    expect(requests).toHaveLength(1);
    expect(released).toStrictEqual(['broken']);
  });

  it.each([409, 422])(
    'says after a %i that a lost answer may have leased under that name',
    async (status) => {
      const conflict: Answer = { status, json: { code: 'name_taken', message: 'in use' } };
      const { error, events } = await acquireWith([reset, conflict, GRANT], { request: { name: 'mine' } });
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

  it('leaves a refusal without a name, or without a lost answer before, as the service put it', async () => {
    const conflict: Answer = { status: 422, json: { code: 'invalid', message: 'no' } };
    expect((await acquireWith([reset, conflict])).error).toMatchObject({ code: 'invalid' });
    const named = await acquireWith([conflict], { request: { name: 'mine' } });
    expect(named.error).toMatchObject({ code: 'invalid' });
  });

  it('asks again as long as the service can not be reached, for nothing was leased', async () => {
    const service = await FakeService.start();
    const pool = new BrowserPool('pool', service.options);
    await service.close();
    const events: AcquireEvent[] = [];
    const error = await rejection(
      acquireSession(pool, {
        request: {},
        acquireTimeout: 10_000,
        pollTimeout: 1000,
        retry: checkRetryOptions({ retries: 3, minTimeout: 10, maxTimeout: 20 }),
        signal: new AbortController().signal,
        onEvent: (event) => events.push(event),
      }),
    );
    await pool.close();
    expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_UNREACHABLE' });
    expect(events.filter(({ type }) => type === 'acquiring')).toHaveLength(4);
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toStrictEqual([]);
  });

  it('asks a service that waits as asked again at once', async () => {
    const { requests, events } = await acquireWith([waitAsAsked({ status: 204 }), GRANT], {
      pollTimeout: 1000,
      retry: { minTimeout: 5000, maxTimeout: 5000, randomize: false },
    });
    expect(requests).toHaveLength(2);
    expect(events.find(({ type }) => type === 'waiting')).toMatchObject({ delay: 0 });
  });

  it('listens longer than the wait that it asks for', async () => {
    const late: Answer = { status: 200, json: session(), delay: 2500 };
    const outcome = await acquireWith([late], { pollTimeout: 1000 });
    expect(outcome.session?.session_id).toBe('session-1');
    expect(waits(outcome)).toStrictEqual([1]);
  });
});
