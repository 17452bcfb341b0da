import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  AcquireTimeoutError,
  BrowserPool,
  ConnectError,
  PoolServiceError,
  runOf,
  type RunEvent,
} from '../../src/index.js';
import { DRIVERS } from '../support/drivers.js';
import { FakeService, reply, session } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { realSession } from '../support/real-session.js';
import { LONG, useClock, watchTimeouts } from './support.js';

describe.each(DRIVERS)('$name', ({ run, lease }) => {
  const used = useLocalPool();
  let service: FakeService;
  let pool: BrowserPool;

  beforeEach(async () => {
    service = await FakeService.start();
    pool = new BrowserPool('test', service.options);
  });

  afterEach(async () => {
    await pool.close();
    await service.close();
  });

  /** The fake service leases a browser of the local pool, and forwards its release. */
  async function lend() {
    const real = await realSession(used.local);
    service.script('release', async (response, { body }) => {
      const { session_id: id, reuse } = body as { session_id: string; reuse: boolean };
      if (id === real['session_id']) await used.pool.release(id, { reuse });
      response.writeHead(204).end();
    });
    return real;
  }

  it('retries after 204 and 429 until a browser is available, and emits events', async () => {
    const real = await lend();
    service.script(
      'acquire',
      { status: 204 },
      { status: 429, json: { code: 'slow_down', message: 'later' }, headers: { 'retry-after': '0' } },
      { status: 200, json: real },
    );
    const events: RunEvent[] = [];
    const retry = { minTimeout: 10 };
    const result = await run(pool, () => 'value', { retry, onEvent: (event) => events.push(event) });
    expect(result).toMatchObject({ value: 'value', acquireAttempts: 3, released: 'reused' });
    expect(events.filter(({ type }) => type === 'acquiring')).toHaveLength(3);
    expect(events.filter(({ type }) => type === 'waiting')).toMatchObject([
      { attempt: 1 },
      { attempt: 2, error: { status: 429 } },
    ]);
  });

  it('fails with AcquireTimeoutError if no browser is available in time, and runOf returns the run', async () => {
    const endTimeout = watchTimeouts();
    let answer!: () => void;
    service.script('acquire', { status: 204 }, { status: 204 }, (response) => {
      answer = () => reply(response, { status: 204 });
      endTimeout();
    });
    const error = await run(pool, () => {}, { acquireTimeout: LONG, retry: { minTimeout: 50 } }).catch(
      (thrown: unknown) => thrown,
    );
    answer();
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ code: 'ERR_ACQUIRE_TIMEOUT', attempts: 3, pool: 'test' });
    expect(service.of('acquire')).toHaveLength(3);
    expect(runOf(error)).toMatchObject({ acquireAttempts: 3, replays: [], replayStatus: 'none' });
    expect(runOf(error)?.session).toBeUndefined();
  });

  it('fails immediately if the service refuses, and never calls the callback', async () => {
    const details = [{ code: 'invalid_input', message: 'tags: too long' }];
    service.script('acquire', { status: 400, json: { code: 'bad_request', message: 'no', details } });
    let calls = 0;
    const error = await run(pool, () => calls++).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PoolServiceError);
    expect(error).toMatchObject({ status: 400, code: 'bad_request', details });
    expect(service.of('acquire')).toHaveLength(1);
    expect(calls).toBe(0);
  });

  it('releases an unreachable browser for destruction, and leases another one', async () => {
    const real = await lend();
    service.script(
      'acquire',
      { status: 200, json: session({ session_id: 'bad' }) },
      { status: 200, json: real },
    );
    const { session: leased, acquireAttempts } = await run(pool, () => {});
    expect(acquireAttempts).toBe(2);
    expect(leased.session_id).toBe(real['session_id']);
    expect(service.of('release').map(({ body }) => body)).toEqual([
      { session_id: 'bad', reuse: false },
      { session_id: real['session_id'], reuse: true },
    ]);
  });

  it('fails with ConnectError after connectAttempts leases, all released', async () => {
    const error = await run(pool, () => {}, { connectAttempts: 2 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectError);
    expect(runOf(error)).toMatchObject({
      acquireAttempts: 2,
      released: 'destroyed',
      session: { session_id: 'session-1' },
    });
    expect(service.released).toEqual(['session-1', 'session-1']);
  });

  it('releases a browser that is leased after an abort, and pool.close() waits for the release', async () => {
    const caller = new AbortController();
    const reason = new Error('no longer');
    let grant!: () => void;
    service.script('acquire', (response) => {
      grant = () => reply(response, { status: 200, json: session({ session_id: 'late' }) });
      caller.abort(reason);
    });
    await expect(run(pool, () => {}, { signal: caller.signal })).rejects.toBe(reason);
    expect(service.released).toEqual([]);
    const closed = pool.close();
    grant();
    await closed;
    expect(service.released).toEqual(['late']);
  });

  it('repeats the release until the service confirms it', async () => {
    const real = await lend();
    service.script('acquire', { status: 200, json: real });
    service.script(
      'release',
      { status: 500 },
      (response) => void response.destroy(),
      async (response) => {
        await used.pool.release(real['session_id'] as string);
        reply(response, { status: 204 });
      },
    );
    expect(await run(pool, () => 'value')).toMatchObject({ value: 'value', released: 'reused' });
    expect(service.released).toHaveLength(3);
  });

  it('counts a session that no longer exists as released', async () => {
    const real = await lend();
    service.script('acquire', { status: 200, json: real });
    service.script('release', { status: 404, json: { code: 'not_found', message: 'no such session' } });
    expect(await run(pool, () => 'value')).toMatchObject({
      value: 'value',
      released: 'destroyed',
      cleanupErrors: [],
    });
    expect(service.released).toHaveLength(1);
    await used.pool.release(real['session_id'] as string);
  });

  it('reports a browser that could not be released, and still returns the value', async () => {
    const real = await lend();
    service.script('acquire', { status: 200, json: real });
    const advance = useClock();
    service.script('release', { status: 503 }, (response) => {
      advance(LONG);
      reply(response, { status: 503 });
    });
    const events: RunEvent[] = [];
    const result = await run(pool, () => 'value', {
      releaseTimeout: LONG,
      onEvent: (event) => events.push(event),
    });
    expect(result).toMatchObject({ value: 'value', released: 'failed' });
    expect(service.released).toHaveLength(2);
    expect(result.cleanupErrors).toMatchObject([{ code: 'ERR_RELEASE', sessionId: real['session_id'] }]);
    expect(events.at(-2)).toMatchObject({ type: 'release-failed', sessionId: real['session_id'] });
    await used.pool.release(real['session_id'] as string);
  });

  it('rejects soon after an abort even if the release hangs, and continues to release', async () => {
    const real = await lend();
    service.script('acquire', { status: 200, json: real });
    const caller = new AbortController();
    let release!: () => void;
    const released = new Promise<void>((resolve) => (release = resolve));
    service.script('release', async (response) => {
      await released;
      await used.pool.release(real['session_id'] as string, { reuse: false });
      reply(response, { status: 204 });
    });
    let abortedAt = 0;
    const running = run(
      pool,
      () => {
        abortedAt = performance.now();
        caller.abort(new Error('stop'));
        return new Promise(() => {});
      },
      { signal: caller.signal, releaseTimeout: 120_000 },
    );
    await expect(running).rejects.toThrow('stop');
    // One second of grace after an abort; the rest is for a busy machine.
    expect(performance.now() - abortedAt).toBeLessThan(30_000);
    expect(used.local.stats().leased).toBe(1);
    release();
    await pool.close();
    expect(used.local.stats().leased).toBe(0);
  });

  it('releases the browser if leaseBrowser fails', async () => {
    await expect(lease(pool, { connectAttempts: 1 })).rejects.toBeInstanceOf(ConnectError);
    expect(service.released).toEqual(['session-1']);
  });

  it('survives a listener that throws', async () => {
    const real = await lend();
    service.script('acquire', { status: 200, json: real });
    const warnings: string[] = [];
    const onWarning = (warning: Error) => void warnings.push(String(warning));
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    const onEvent = () => {
      throw new Error('bad listener');
    };
    expect(await run(pool, () => 'value', { onEvent })).toMatchObject({ value: 'value', released: 'reused' });
    await expect.poll(() => warnings.join()).toContain('bad listener');
  });
});
