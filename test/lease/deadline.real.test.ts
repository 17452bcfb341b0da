import { beforeAll, describe, expect, it } from 'vitest';
import { isAcquireTimeoutError } from '../../src/shared/lease-errors.js';
import { reply, session, type Answer } from '../support/fake-service.js';
import { hang } from '../service/support.js';
import { acquireWith, GRANT, NONE, waits } from './support.js';

// Loads the lazy modules first, so that the short times below measure requests only.
beforeAll(() => acquireWith([GRANT]));

/** An answer that comes after the call has settled. */
function afterSettling(answer: Parameters<typeof reply>[1]) {
  let settle!: () => void;
  const settled = new Promise<void>((resolve) => (settle = resolve));
  const late = (response: Parameters<typeof reply>[0]) => void settled.then(() => reply(response, answer));
  return { late, onSettled: settle };
}

describe.concurrent('the deadline of acquireSession', () => {
  it('throws AcquireTimeoutError with the number of requests and the time waited', async () => {
    const { late, onSettled } = afterSettling({ status: 204 });
    const options = { acquireTimeout: 10_000 };
    const { error, requests } = await acquireWith([NONE, NONE, late], options, { onSettled });
    expect(isAcquireTimeoutError(error)).toBe(true);
    expect(requests).toHaveLength(3);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', pool: 'pool', attempts: 3 });
    expect(error?.['waited']).toBeGreaterThanOrEqual(9990);
    expect(error?.['waited']).toBe(error?.['elapsed']);
    expect(error?.message).toMatch(/pool "pool" within 10 s.*acquireTimeout/);
  });

  it('reports the last error of the service', async () => {
    const answer: Answer = { status: 503, json: { code: 'pool_empty', message: 'none' } };
    const { error } = await acquireWith([answer], { acquireTimeout: 10_000 });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', cause: { status: 503, code: 'pool_empty' } });
  });

  it('applies to a service that never answers, and releases a browser that it leases later', async () => {
    const { late, onSettled } = afterSettling({ status: 200, json: session() });
    const { error, released, events } = await acquireWith([late], { acquireTimeout: 10_000 }, { onSettled });
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 1 });
    expect(released).toStrictEqual(['session-1']);
    expect(events.map(({ type }) => type)).toStrictEqual(['acquiring', 'grant-orphaned', 'released']);
  });

  it('limits the requested wait to the whole seconds before the deadline', async () => {
    const later: Answer = { status: 204, delay: 1100 };
    const outcome = await acquireWith([later, later, GRANT], { acquireTimeout: 40_000, pollTimeout: 60_000 });
    const left = outcome.events.flatMap((event) => (event.type === 'acquiring' ? [event.timeLeft] : []));
    const allowed = left.map((ms) => Math.floor(ms / 1000));
    expect(waits(outcome)).toStrictEqual(allowed);
    expect(allowed).toHaveLength(3);
    expect(allowed[1]).toBeLessThan(allowed[0]!);
    expect(allowed[2]).toBeLessThan(allowed[1]!);
  });

  it.each([
    [1, 1],
    [999, 1],
    [1000, 1],
    [1001, 2],
    [25_000, 25],
    [100_000, 100],
  ])('rounds a pollTimeout of %i ms to %i seconds', async (pollTimeout, expected) => {
    const outcome = await acquireWith([GRANT], { acquireTimeout: 200_000, pollTimeout });
    expect(waits(outcome)).toStrictEqual([expected]);
  });

  it('lets the service decide about the wait with pollTimeout: false', async () => {
    const { requests } = await acquireWith([NONE, GRANT], { pollTimeout: false });
    expect(requests).toHaveLength(2);
    for (const { body } of requests) expect(body).not.toHaveProperty('acquire_timeout_seconds');
  });

  it('waits for a response without a limit with acquireTimeout: Infinity', async () => {
    const { session } = await acquireWith([NONE, GRANT], { acquireTimeout: Number.POSITIVE_INFINITY });
    expect(session?.session_id).toBe('session-1');
  });
});

describe.concurrent('Retry-After', () => {
  it.each([429, 503])('is honoured after a %i', async (status) => {
    const { requests } = await acquireWith([{ status, headers: { 'retry-after': '1' } }, GRANT]);
    expect(requests).toHaveLength(2);
    expect(requests[1]!.at - requests[0]!.at).toBeGreaterThan(950);
  });

  it('is honoured as a date', async () => {
    const headers = {
      date: 'Wed, 01 Jan 2020 00:00:00 GMT',
      'retry-after': 'Wed, 01 Jan 2020 00:00:01 GMT',
    };
    const { requests } = await acquireWith([{ status: 503, headers }, GRANT]);
    expect(requests[1]!.at - requests[0]!.at).toBeGreaterThan(950);
  });

  it.each(['Wed, 01 Jan 2020 00:00:00 GMT', 'soon', '-1', ''])('is ignored as %j', async (value) => {
    const answer: Answer = { status: 503, headers: { 'retry-after': value } };
    const { session, events } = await acquireWith([answer, GRANT]);
    expect(session?.session_id).toBe('session-1');
    expect(events.find((event) => event.type === 'waiting')?.error).not.toHaveProperty('retryAfter');
  });

  it('is capped by the deadline', async () => {
    const { error, requests } = await acquireWith(
      [{ status: 503, headers: { 'retry-after': '1000000000' } }, GRANT],
      { acquireTimeout: 10_000 },
    );
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 1, cause: { status: 503 } });
    expect(requests).toHaveLength(1);
  });
});

describe.concurrent('an abort of acquireSession', () => {
  const REASON = new Error('enough');

  it('during a request rejects immediately with its reason', async () => {
    const caller = new AbortController();
    const { late, onSettled } = afterSettling({ status: 204 });
    const answer: Answer = (response) => {
      caller.abort(REASON);
      late(response);
    };
    const { error, requests } = await acquireWith([answer], { signal: caller.signal }, { onSettled });
    expect(error).toBe(REASON);
    expect(requests).toHaveLength(1);
  });

  it('during a pause rejects immediately with its reason', async () => {
    const caller = new AbortController();
    const { error, requests } = await acquireWith(
      [{ status: 503, headers: { 'retry-after': '60' } }, GRANT],
      {
        signal: caller.signal,
        onEvent: ({ type }) => void (type === 'waiting' && setImmediate(() => caller.abort(REASON))),
      },
    );
    expect(error).toBe(REASON);
    expect(requests).toHaveLength(1);
  });

  it('before it rejects without a request', async () => {
    const { error, requests } = await acquireWith([hang], { signal: AbortSignal.abort(REASON) });
    expect(error).toBe(REASON);
    expect(requests).toHaveLength(0);
  });

  it.each(['a string', 0, null])('rejects with the reason %j unchanged', async (reason) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 50);
    const { error } = await acquireWith([{ status: 503 }], { signal: controller.signal });
    expect(error).toBe(reason);
  });

  it('releases a browser that the service leases later', async () => {
    const caller = new AbortController();
    const { late, onSettled } = afterSettling({ status: 200, json: session() });
    const answer: Answer = (response) => {
      caller.abort(REASON);
      late(response);
    };
    const { error, released } = await acquireWith([answer], { signal: caller.signal }, { onSettled });
    expect(error).toBe(REASON);
    expect(released).toStrictEqual(['session-1']);
  });
});
