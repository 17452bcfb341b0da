import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  BrowserLostError,
  BrowserPool,
  CallbackTimeoutError,
  CleanupError,
  runOf,
  withPooledBrowser,
  type Connector,
  type LeaseOutcome,
  type RunOptions,
} from '../../src/index.js';
import { kernel } from '../../src/services.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';
import { answerOwnCommand, settle, until } from '../support/played-browser.js';
import { PlayedLease } from '../support/played-lease.js';
import { answerLater, LONG, useClock } from './support.js';

const DAY = 86_400_000;
const never = () => new Promise<never>(() => {});
const fail = (thrown: unknown) => () => Promise.reject(thrown);
const sessionId = 'session-1';

/** Stops the library's timers before the cleanup. The cleanup starts them again with `useRealClock()`. */
function stopTimers(): RunOptions {
  const onEvent: RunOptions['onEvent'] = ({ type }) =>
    type === 'callback-ended' && useFakeClock({ toFake: ['setTimeout'] });
  return { replays: 'off', onEvent };
}

describe('the callback', () => {
  it('receives the handles of the library, the session and a signal, and is reported with its success', async () => {
    await using played = await PlayedLease.start({ handles: { page: 'mine' } });
    const { value } = await played.run(({ page, session, signal }) => {
      return [page, session.session_id, signal.aborted];
    });
    expect(value).toEqual(['mine', sessionId, false]);
    await played.run(fail(new Error('mine')));
    expect(played.told('callback-started')).toMatchObject([{ sessionId }, { sessionId }]);
    const endings = played.told('callback-ended').map((event) => [event.sessionId, event.status]);
    expect(endings).toEqual([
      [sessionId, 'succeeded'],
      [sessionId, 'failed'],
    ]);
  });

  it.each([undefined, null, 0, 'a text', Symbol('mine'), () => 'mine', Object.freeze(new Error('mine'))])(
    'may throw anything, once: %s',
    async (thrown) => {
      await using played = await PlayedLease.start();
      let calls = 0;
      const outcome = await played.run(() => {
        calls++;
        throw thrown;
      });
      expect({ error: outcome.error, calls }).toEqual({ error: thrown, calls: 1 });
      // Only objects can belong to a run.
      const hasRun = typeof thrown === 'function' || thrown instanceof Error;
      expect(outcome.run?.released).toBe(hasRun ? 'reused' : undefined);
      expect(played.releases).toHaveLength(1);
    },
  );

  it('throws its own error also if the library fails to explain it', async () => {
    await using played = await PlayedLease.start();
    const explain = () => {
      throw new Error('not mine');
    };
    const connect: Connector['connect'] = async (request) => ({
      ...(await played.connector.connect(request)),
      explain,
    });
    const mine = new Error('mine');
    const connector: Connector = { ...played.connector, connect };
    const error = await withPooledBrowser(played.pool, fail(mine), { connector }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBe(mine);
    expect(played.releases).toHaveLength(1);
  });

  it('is not called after an abort', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    let calls = 0;
    const { error } = await played.run(() => calls++, {
      signal: caller.signal,
      onEvent: ({ type }) => type === 'callback-started' && caller.abort('left'),
    });
    expect({ error, calls }).toEqual({ error: 'left', calls: 0 });
    expect(played.releases).toEqual([{ session_id: sessionId, reuse: false }]);
  });

  it('fails when the signal aborts during the call, even if it returns', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const reason = new Error('left');
    const { error, run } = await played.run(() => caller.abort(reason), { signal: caller.signal });
    expect(error).toBe(reason);
    expect(run).toMatchObject({ released: 'destroyed', session: { session_id: sessionId } });
    expect(played.told('callback-ended')).toMatchObject([{ status: 'failed' }]);
  });

  it('ends at its timeout, with an error that has the pool and the session', async () => {
    await using played = await PlayedLease.start();
    let reason: unknown;
    const callback = ({ signal }: { signal: AbortSignal }) => {
      signal.addEventListener('abort', () => (reason = signal.reason));
      return never();
    };
    const { error, run } = await played.run(callback, { timeout: 50 });
    expect(error).toBeInstanceOf(CallbackTimeoutError);
    expect(error).toMatchObject({ timeout: 50, pool: 'test', sessionId });
    expect(reason).toBe(error);
    expect(run).toMatchObject({ released: 'destroyed' });
  });

  it('clears its timeout when it ends', async () => {
    await using played = await PlayedLease.start();
    const { value } = await played.run(({ signal }) => signal, { timeout: 100 });
    await sleep(150);
    expect((value as AbortSignal).aborted).toBe(false);
  });
});

describe('a browser that is lost', () => {
  it.each([
    ['breaks', 'dropped', /connection broke, or the other side stopped/],
    ['closes', 'closed-by-service', /the other side closed the connection/],
    ['expires', 'expired', /its session expired/],
  ] as const)('fails the callback and is reported when it %s', async (how, reason, text) => {
    let client: { terminate(): void; close(code: number, reason?: string): void };
    await using played = await PlayedLease.start();
    played.browser.onText = (_text, other) => (client = other);
    const { error } = await played.run(async ({ signal }) => {
      played.requests[0]!.socket.send('hello');
      await expect.poll(() => client).toBeDefined();
      if (how === 'breaks') client.terminate();
      else client.close(1001, how === 'expires' ? 'expired' : '');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return 'value';
    });
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ reason, pool: 'test', sessionId, message: expect.stringMatching(text) });
    expect(played.told('browser-lost')).toMatchObject([{ sessionId, error }]);
  });

  it('is detected through the library after the callback has returned or thrown', async () => {
    await using played = await PlayedLease.start({ isConnected: () => false });
    const returned = await played.run();
    expect(returned.error).toBeInstanceOf(BrowserLostError);
    expect(returned.error).toMatchObject({
      reason: 'closed-by-callback',
      message: expect.stringMatching(/the callback closed the browser/) as string,
    });
    const mine = new Error('mine');
    const threw = await played.run(fail(mine));
    expect(threw.error).toBe(mine);
    expect(played.told('browser-lost')).toHaveLength(2);
    for (const { run } of [returned, threw]) expect(run).toMatchObject({ released: 'destroyed' });
  });
});

describe('the end of a lease', () => {
  it('cleans up, disconnects and releases, in this order, with an event for each step', async () => {
    await using played = await PlayedLease.start();
    const published: unknown[] = [];
    const listen = (event: unknown) => void published.push(event);
    subscribe('pooled-browser:event', listen);
    const { run } = await played.run();
    unsubscribe('pooled-browser:event', listen);
    expect(played.steps).toEqual(['cleanup', 'disconnect', 'release']);
    expect(run).toMatchObject({ value: 'value', session: { session_id: sessionId }, released: 'reused' });
    expect(run).toMatchObject({ acquireAttempts: 1, unknownAcquires: 0, cleanupErrors: [], artifacts: [] });
    const { events } = played;
    expect(published).toEqual(events);
    const types = events.map(({ type }) => type);
    const steps = ['acquiring', 'acquired', 'connecting', 'connected', 'callback-started', 'callback-ended'];
    expect(types.slice(0, 6)).toEqual(steps);
    expect(types.slice(6, 8).toSorted()).toEqual(['cleaned-up', 'replays']);
    expect(types.slice(8)).toEqual(['released', 'ended']);
    expect(played.told('cleaned-up')).toMatchObject([{ sessionId }]);
    expect(played.told('cleaned-up')[0]).not.toHaveProperty('error');
    expect(played.told('released')).toMatchObject([{ pool: 'test', sessionId, released: 'reused' }]);
    expect(events.at(-1)).toMatchObject({
      status: 'succeeded',
      summary: { released: 'reused', acquireAttempts: 1 },
    });
    expect(events.at(-1)).not.toHaveProperty('error');
    // The next call of the process has the next number.
    await played.run();
    const { run: number } = events[0]!;
    const all = events.map((event) => [event.pool, event.run]);
    expect(new Set(all.map(String))).toEqual(new Set([`test,${number}`, `test,${number + 1}`]));
    const times = events.slice(0, 10).map(({ elapsed }) => elapsed);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it.each([DAY, -DAY])(
    'has whole milliseconds for each stage, when the wall clock jumps by %i ms',
    async (jump) => {
      onTestFinished(() => void vi.useRealTimers());
      vi.useFakeTimers({ toFake: ['Date'] });
      let connects = 0;
      const connect = async () => {
        vi.setSystemTime(Date.now() + jump);
        await sleep(30);
        if (++connects === 1) throw new Error('no');
      };
      await using played = await PlayedLease.start({ connect });
      const { timings } = (await played.run(undefined, { timeout: 60_000 })).run!;
      const stages = ['acquire', 'connect', 'callback', 'cleanup', 'replays', 'release', 'total'] as const;
      for (const stage of stages) expect(Number.isInteger(timings[stage]), stage).toBe(true);
      // Both connects count.
      expect(timings.connect).toBeGreaterThanOrEqual(55);
      expect(timings.total).toBeGreaterThanOrEqual(timings.connect! - 1);
      expect(timings.total).toBeLessThan(20_000);
    },
  );

  it('has no time for a stage that was not reached', async () => {
    await using refused = await PlayedLease.start();
    refused.service.script('acquire', { status: 403 });
    expect(Object.keys((await refused.run()).run!.timings).toSorted()).toEqual(['acquire', 'total']);
  });

  it('destroys a browser whose pages could not be closed, and reports why', async () => {
    await using played = await PlayedLease.start({ cleanup: fail(new Error('a dialog')) });
    const { value, run } = await played.run();
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(run!.cleanupErrors).toHaveLength(1);
    const [error] = run!.cleanupErrors;
    expect(error).toBeInstanceOf(CleanupError);
    expect(error).toMatchObject({ sessionId, cause: { message: 'a dialog' } });
    expect(played.told('cleaned-up')).toMatchObject([{ sessionId, error }]);
    expect(played.steps).toEqual(['cleanup', 'disconnect', 'release']);
  });

  it('does not wait for a browser that does not respond, nor for a library that does not disconnect', async () => {
    await using played = await PlayedLease.start({
      cleanup: () => {
        vi.advanceTimersByTime(5000);
        return never();
      },
      disconnect: () => {
        vi.advanceTimersByTime(2000);
        useRealClock();
        return never();
      },
    });
    const { run } = await played.run(undefined, stopTimers());
    expect(run).toMatchObject({ released: 'destroyed' });
    const cause = { message: expect.stringMatching(/within 5 s/) as string };
    const late = { message: 'it took longer than 2 s' };
    expect(run!.cleanupErrors).toMatchObject([
      { name: 'CleanupError', sessionId, cause },
      { name: 'CleanupError', sessionId, cause: late },
    ]);
  });

  it('cleans a browser that takes a second for each response, as on a busy machine', async () => {
    let seconds = 0;
    await using played = await PlayedLease.start({
      cleanup: async () => {
        played.browser.onText = (text, client) => {
          seconds++;
          vi.advanceTimersByTime(1000);
          void settle().then(() => client.send(answerOwnCommand(text)!));
        };
      },
      disconnect: async () => useRealClock(),
    });
    const { run } = await played.run(undefined, stopTimers());
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(seconds).toBeGreaterThan(5);
  });

  it('stays connected during the cleanup, and does not wait for a cleanup whose socket has ended', async () => {
    await using played = await PlayedLease.start({
      cleanup: async () => {
        const { socket } = played.requests.at(-1)!;
        socket.send('closing pages');
        await until(() => played.browser.received.length > 0);
        useRealClock();
        if (played.requests.length === 1) return;
        socket.cut('dropped');
        await never();
      },
    });
    expect((await played.run(undefined, stopTimers())).run).toMatchObject({ released: 'reused' });
    expect(played.browser.received[0]).toBe('closing pages');
    const { run } = await played.run();
    expect(run).toMatchObject({ released: 'destroyed' });
    const cause = { message: expect.stringMatching(/ended \(dropped\)/) as string };
    expect(run!.cleanupErrors).toMatchObject([{ name: 'CleanupError', sessionId, cause }]);
    expect(played.told('browser-lost')).toEqual([]);
  });

  it('cuts the connection of a callback that continues after an abort, and skips the cleanup', async () => {
    await using played = await PlayedLease.start({
      disconnect: async () => played.requests[0]!.socket.send('still at work'),
    });
    const caller = new AbortController();
    let failLate!: (error: Error) => void;
    const callback = () => {
      caller.abort(new Error('stop'));
      return new Promise((_resolve, reject) => (failLate = reject));
    };
    const { error, run } = await played.run(callback, { signal: caller.signal });
    // No unhandled rejection follows.
    failLate(new Error('too late'));
    expect(error).toBe(caller.signal.reason);
    expect(played.steps).toEqual(['disconnect', 'release']);
    expect(run).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
    expect(played.told('cleaned-up')).toEqual([]);
    expect(await played.requests[0]!.socket.ended).toBe('closed-by-us');
    expect(played.browser.received).toEqual([]);
  });

  it('continues after an aborted call has rejected, if the service takes long', async () => {
    await using played = await PlayedLease.start();
    const { late, settle } = answerLater({ status: 204 });
    played.service.script('release', late);
    const caller = new AbortController();
    const { pool, connector } = played;
    const running = withPooledBrowser(pool, () => caller.abort('stop'), { connector, signal: caller.signal });
    await expect(running).rejects.toBe('stop');
    let hasClosed = false;
    const closed = pool.close().then(() => (hasClosed = true));
    await sleep(20);
    expect(hasClosed).toBe(false);
    settle();
    await closed;
    expect(played.releases).toHaveLength(1);
  });

  it('is cleaned over BiDi also without a limit of the connect', async () => {
    await using played = await PlayedLease.start();
    const options = { protocol: 'bidi', connectTimeout: Number.POSITIVE_INFINITY } as const;
    const { run } = await played.run(undefined, options);
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
  });

  it("leaves no listener on the caller's signal or on the process", async () => {
    await using played = await PlayedLease.start();
    const before = process.listenerCount('exit');
    const { signal } = new AbortController();
    await played.run(undefined, { signal });
    await (await played.lease({ signal })).release();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(process.listenerCount('exit')).toBe(before);
  });

  it('fails the run when the signal aborts during the cleanup, and runOf returns the run', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const reason = new Error('left');
    const { error, run } = await played.run(undefined, {
      signal: caller.signal,
      onEvent: ({ type }) => type === 'cleaned-up' && caller.abort(reason),
    });
    expect(error).toBe(reason);
    expect(run).toMatchObject({ released: 'reused', session: { session_id: sessionId } });
    expect(run).not.toHaveProperty('value');
    expect(played.told('ended')).toMatchObject([{ status: 'failed', error: reason }]);
  });
});

describe('the option release', () => {
  const release = async (options: RunOptions, callback?: () => unknown, isClean = true) => {
    await using played = await PlayedLease.start(isClean ? {} : { cleanup: fail(new Error('no')) });
    const { run } = await played.run(callback, options);
    return { run: run!, releases: played.releases, steps: played.steps };
  };

  it.each([
    ['reuse', true, 'reused', [{ session_id: sessionId, reuse: true }]],
    ['reuse', false, 'reused', [{ session_id: sessionId, reuse: true }]],
    ['destroy', true, 'destroyed', [{ session_id: sessionId, reuse: false }]],
    ['auto', true, 'reused', [{ session_id: sessionId, reuse: true }]],
    ['auto', false, 'destroyed', [{ session_id: sessionId, reuse: false }]],
    ['leave', true, 'left', []],
  ] as const)('%s of a browser whose cleanup succeeds: %j', async (choice, isClean, released, releases) => {
    const outcome = await release({ release: choice }, undefined, isClean);
    expect(outcome.run.released).toBe(released);
    expect(outcome.releases).toEqual(releases);
    // A browser that is left keeps its pages.
    expect(outcome.steps.includes('cleanup')).toBe(choice !== 'leave');
  });

  it.each([
    ['default', 'auto', 'destroyed'],
    ['default', 'reuse', 'reused'],
    ['new', 'auto', 'reused'],
  ] as const)('with a profile and the context %s: %s leaves it %s', async (context, choice, released) => {
    await using played = await PlayedLease.start();
    const json = played.session({ profile: { id: 'logins' } });
    played.service.script('acquire', { status: 200, json });
    const { run } = await played.run(undefined, { context, release: choice });
    expect(run).toMatchObject({ released, cleanupErrors: [] });
    // The logins of the profile stay.
    expect(played.browser.received).not.toContainEqual(expect.stringContaining('clear'));
  });

  it('destroys a browser in which something of the lease is left, and reports why', async () => {
    await using played = await PlayedLease.start();
    const advance = useClock();
    const left = JSON.stringify({ targetId: 'left', type: 'iframe', url: '' });
    played.browser.onText = (text, client) => {
      client.send(answerOwnCommand(text)!.replace('"targetInfos":[]', `"targetInfos":[${left}]`));
      advance(400);
    };
    const { run } = await played.run();
    expect(run).toMatchObject({ value: 'value', released: 'destroyed' });
    const cause = { message: 'A page or a worker of the lease is still running.' };
    expect(run!.cleanupErrors).toMatchObject([{ name: 'CleanupError', cause }]);
  });

  it('destroys every browser of a service that never leases a session twice', async () => {
    await using played = await PlayedLease.start();
    const { owner: _owner, ...service } = kernel;
    await using pool = new BrowserPool('test', { ...played.service.options, service });
    for (const release of ['auto', 'reuse'] as const)
      expect((await played.run(undefined, { release }, pool)).run).toMatchObject({ released: 'destroyed' });
  });

  it('may be a function, which receives the outcome of the lease', async () => {
    const seen: LeaseOutcome[] = [];
    const choose = (outcome: LeaseOutcome) => {
      seen.push(outcome);
      return 'destroy' as const;
    };
    const mine = new Error('mine');
    await release({ release: choose });
    const failed = await release({ release: choose }, fail(mine), false);
    expect(failed.run.released).toBe('destroyed');
    expect(seen).toMatchObject([
      { status: 'ok', healthy: true, session: { session_id: sessionId } },
      { status: 'failed', error: mine, healthy: false, session: { session_id: sessionId } },
    ]);
    expect(seen[0]).not.toHaveProperty('error');
  });

  it('falls back to auto when the function throws', async () => {
    const mine = new Error('mine');
    const choose = () => {
      throw mine;
    };
    for (const isClean of [true, false]) {
      const { run } = await release({ release: choose }, undefined, isClean);
      expect(run.released).toBe(isClean ? 'reused' : 'destroyed');
      expect(run.cleanupErrors).toContain(mine);
    }
  });

  it('may be a function that returns auto', async () => {
    for (const isClean of [true, false]) {
      const { run } = await release({ release: () => 'auto' }, undefined, isClean);
      expect(run.released).toBe(isClean ? 'reused' : 'destroyed');
    }
  });

  it.each([
    ['nothing', undefined, 'undefined'],
    ['an unknown text', 'keep', "'keep'"],
    ['a promise', new Promise(() => {}), 'an object'],
  ])('falls back to auto, with an error, when the function returns %s', async (_what, choice, shown) => {
    const { run } = await release({ release: () => choice as 'auto' });
    const message = `The function release must return 'auto', 'reuse', 'destroy' or 'leave', not ${shown}.`;
    expect(run).toMatchObject({
      released: 'reused',
      cleanupErrors: [{ code: 'ERR_INVALID_OPTION', message }],
    });
  });

  const revoked = Proxy.revocable({}, {});
  revoked.revoke();

  it.each([
    ['a text', 'no error', "'no error' was thrown"],
    ['nothing', undefined, 'undefined was thrown'],
    ['a revoked proxy', revoked.proxy, 'a value that can not be read was thrown'],
  ])('reports an error also if the function throws %s', async (_what, thrown: unknown, message) => {
    const choose = () => {
      throw thrown;
    };
    const { run } = await release({ release: choose });
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [new Error(message)] });
  });
});

describe('a release', () => {
  it('that fails is reported, and the run still has its value or the own error of the callback', async () => {
    await using played = await PlayedLease.start();
    played.service.script('release', { status: 403 });
    const mine = new Error('mine');
    const failed = await played.run(fail(mine));
    expect(failed).toMatchObject({ error: mine, run: { cleanupErrors: [{ code: 'ERR_RELEASE' }] } });
    played.events.length = 0;
    const { value, run } = await played.run();
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'failed', cleanupErrors: [{ code: 'ERR_RELEASE', sessionId }] });
    expect(played.told('release-failed')).toMatchObject([
      { pool: 'test', sessionId, error: run!.cleanupErrors[0] },
    ]);
    expect(played.told('released')).toEqual([]);
  });

  it('follows an abort, however soon after the response to the acquire request it comes', async () => {
    for (let ticks = 0; ticks < 32; ticks++) {
      await using played = await PlayedLease.start();
      const caller = new AbortController();
      const abort = async () => {
        for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
        caller.abort('left');
      };
      const grant: typeof kernel.grant = (...response) => {
        void abort();
        return kernel.grant(...response);
      };
      // A release that takes longer would be repeated.
      const options = { signal: caller.signal, releaseTimeout: 60_000 };
      const pool = new BrowserPool('test', { ...played.service.options, service: { ...kernel, grant } });
      const { error } = await played.run(undefined, options, pool);
      await pool.close();
      expect({ error, released: played.service.released }, `${ticks} microtasks`).toEqual({
        error: 'left',
        released: ['session-1'],
      });
    }
  });

  it('and its call agree with the event ended, also if its listener aborts the signal', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const onEvent: RunOptions['onEvent'] = ({ type }) => type === 'ended' && caller.abort();
    const { value } = await played.run(undefined, { signal: caller.signal, onEvent });
    expect([value, played.told('ended')]).toMatchObject(['value', [{ status: 'succeeded' }]]);
  });

  it('is repeated until releaseTimeout', async () => {
    await using played = await PlayedLease.start();
    const advance = useClock();
    played.service.script('release', { status: 500 }, (response) => {
      advance(LONG);
      response.writeHead(500).end();
    });
    const { run } = await played.run(undefined, { releaseTimeout: LONG });
    expect(run!.cleanupErrors).toMatchObject([{ code: 'ERR_RELEASE', message: /within 7200 s/ }]);
    expect(played.releases).toHaveLength(2);
  });
});

describe('with awaitRelease: false', () => {
  it.each([
    ['returns a value', () => 'value'],
    ['throws', fail(new Error('mine'))],
  ])('a run that %s ends during its release, for which pool.close() waits', async (_what, fn) => {
    await using played = await PlayedLease.start();
    const { late, settle } = answerLater({ status: 204 });
    played.service.script('release', late);
    const { onText } = played.browser;
    const unanswered: Parameters<typeof onText>[] = [];
    const holding = () => {
      played.browser.onText = (...message) => void unanswered.push(message);
      return fn();
    };
    const { run } = await played.run(holding, { awaitRelease: false });
    // The call has not waited for the cleaning, whose commands the browser answers only now.
    played.browser.onText = onText;
    for (const message of unanswered) onText(...message);
    expect(run).toMatchObject({ released: 'pending', session: { session_id: sessionId } });
    expect(played.told('released')).toEqual([]);
    let hasClosed = false;
    const closed = played.pool.close().then(() => (hasClosed = true));
    await sleep(50);
    expect(hasClosed).toBe(false);
    settle();
    await closed;
    expect(played.told('released')).toMatchObject([{ sessionId, released: 'reused' }]);
    const order = played.events
      .map(({ type }) => type)
      .filter((type) => /^(ended|cleaned-up|released)$/.test(type));
    expect(order).toEqual(['ended', 'cleaned-up', 'released']);
  });

  it('a release that failed after the run is reported, and a browser may be left', async () => {
    await using played = await PlayedLease.start();
    played.service.script('release', { status: 403 });
    expect((await played.run(undefined, { awaitRelease: false })).value).toBe('value');
    const { run } = await played.run(undefined, { awaitRelease: false, release: 'leave' });
    expect(run).toMatchObject({ released: 'left' });
    await played.pool.close();
    expect(played.told('release-failed')).toMatchObject([{ error: { code: 'ERR_RELEASE' } }]);
    expect(played.releases).toHaveLength(1);
  });
});

describe('runOf', () => {
  it('returns nothing for the reason of a signal that two runs shared; the event ended has each summary', async () => {
    await using played = await PlayedLease.start();
    const sessions = [1, 2].map((id) => played.session({ session_id: `session-${id}` }));
    played.service.script('acquire', ...sessions.map((json) => ({ status: 200, json })));
    const shared = new AbortController();
    const runs = [1, 2].map(() => played.run(never, { signal: shared.signal }));
    await expect.poll(() => played.told('callback-started').length).toBe(2);
    const reason = new Error('stop');
    shared.abort(reason);
    for (const { error } of await Promise.all(runs)) expect(error).toBe(reason);
    expect(runOf(reason)).toBeUndefined();
    const ended = played.told('ended');
    expect(ended).toMatchObject([
      { status: 'failed', error: reason },
      { status: 'failed', error: reason },
    ]);
    const ids = ended.map(({ summary }) => summary.session?.session_id);
    expect(new Set(ids)).toEqual(new Set(['session-1', 'session-2']));
  });

  it.each([undefined, 'a text', 5, {}])('returns nothing for the thrown value %j', (value) => {
    expect(runOf(value)).toBeUndefined();
  });
});

describe('leaseBrowser', () => {
  it('returns everything that a callback receives, and ends once, by release() or with its block', async () => {
    await using played = await PlayedLease.start();
    const lease = await played.lease();
    expect(lease).toMatchObject({ page: 'a page', session: { session_id: sessionId } });
    expect(lease.signal.aborted).toBe(false);
    const [first, second] = [lease.release(), lease.release()];
    expect(await first).toBe(await second);
    expect(await first).toMatchObject({ released: 'reused', acquireAttempts: 1, replayStatus: 'none' });
    {
      await using inBlock = await played.lease();
      expect([inBlock.page, played.releases.length]).toEqual(['a page', 1]);
    }
    expect(played.releases).toHaveLength(2);
    // The end is awaited by the pool, too.
    void (await played.lease()).release();
    await played.pool.close();
    expect(played.releases).toHaveLength(3);
  });

  it('lists the recordings of the lease so far', async () => {
    await using played = await PlayedLease.start();
    const [ours, later] = [{ replay_id: 'ours' }, { replay_id: 'later' }];
    const lists = [[], [ours], [ours, later]].map((json) => ({ status: 200, json }));
    played.service.script('replays', ...lists);
    const lease = await played.lease();
    expect(await lease.replays()).toEqual([ours]);
    expect(await lease.release()).toMatchObject({ replays: [ours, later] });
    await using off = await played.lease({ replays: 'off' });
    expect(await off.replays()).toEqual([]);
  });

  it('ends as failed, with the reason, after its signal has aborted', async () => {
    await using played = await PlayedLease.start();
    const seen: LeaseOutcome[] = [];
    const release = (outcome: LeaseOutcome) => {
      seen.push(outcome);
      return 'reuse' as const;
    };
    const caller = new AbortController();
    const lease = await played.lease({ signal: caller.signal, release });
    caller.abort('left');
    expect(lease.signal.reason).toBe('left');
    await lease.release();
    await (await played.lease({ release })).release();
    expect(seen).toMatchObject([
      { status: 'failed', error: 'left', healthy: false },
      { status: 'ok', healthy: true },
    ]);
    expect(seen[1]!.error).toBeUndefined();
  });

  it('rejects if the signal aborts before it returns', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const leasing = played.lease({
      signal: caller.signal,
      onEvent: ({ type }) => type === 'connecting' && caller.abort('left'),
    });
    await expect(leasing).rejects.toBe('left');
    await played.pool.close();
    expect(played.releases).toHaveLength(1);
  });
});
