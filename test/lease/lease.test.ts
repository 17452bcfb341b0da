import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  BrowserLostError,
  CallbackTimeoutError,
  CleanupError,
  type LeaseOutcome,
  type RunOptions,
} from '../../src/index.js';
import { until } from '../support/played-browser.js';
import { PlayedLease } from '../support/played-lease.js';
import { LONG, useClock } from './support.js';

const never = () => new Promise<never>(() => {});

/** Stops all timers before the cleanup. The cleanup starts them again with `vi.useRealTimers()`. */
function stopTimers(): RunOptions {
  onTestFinished(() => void vi.useRealTimers());
  const onEvent: RunOptions['onEvent'] = ({ type }) =>
    type === 'callback-ended' && vi.useFakeTimers({ toFake: ['setTimeout'] });
  return { replays: 'off', onEvent };
}

describe('the callback', () => {
  it('receives the handles of the library, the session and a signal', async () => {
    await using played = await PlayedLease.start({ handles: { page: 'mine' } });
    const { value } = await played.run(({ page, session, signal }) => {
      return [page, session.session_id, signal.aborted];
    });
    expect(value).toEqual(['mine', 'session-1', false]);
  });

  it('is reported as ok only if it succeeded', async () => {
    await using played = await PlayedLease.start();
    await played.run();
    await played.run(() => {
      throw new Error('mine');
    });
    expect(played.told('callback-started')).toMatchObject([
      { sessionId: 'session-1' },
      { sessionId: 'session-1' },
    ]);
    expect(played.told('callback-ended')).toMatchObject([
      { sessionId: 'session-1', status: 'ok' },
      { sessionId: 'session-1', status: 'failed' },
    ]);
  });

  it('is not called after an abort', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    let calls = 0;
    const { error, run } = await played.run(() => calls++, {
      signal: caller.signal,
      onEvent: ({ type }) => type === 'callback-started' && caller.abort('left'),
    });
    expect({ error, calls }).toEqual({ error: 'left', calls: 0 });
    expect(run).toBeUndefined();
    expect(played.releases).toEqual([{ session_id: 'session-1', reuse: false }]);
  });

  it.each([undefined, null, 0, 'a text', Symbol('mine'), () => 'mine'])(
    'may throw anything: %s',
    async (thrown) => {
      await using played = await PlayedLease.start();
      const outcome = await played.run(() => {
        throw thrown;
      });
      expect(outcome.error).toBe(thrown);
      // Only objects can belong to a run.
      expect(outcome.run?.released).toBe(typeof thrown === 'function' ? 'reused' : undefined);
      expect(played.releases).toHaveLength(1);
    },
  );

  it('fails when the signal aborts during the call, even if it returns', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const reason = new Error('left');
    const { error, run } = await played.run(() => caller.abort(reason), { signal: caller.signal });
    expect(error).toBe(reason);
    expect(run).toMatchObject({ released: 'destroyed', session: { session_id: 'session-1' } });
    expect(played.told('callback-ended')).toMatchObject([{ status: 'failed' }]);
  });

  it('clears its timeout when it ends', async () => {
    await using played = await PlayedLease.start();
    const { value } = await played.run(({ signal }) => signal, { timeout: 100 });
    await sleep(200);
    expect((value as AbortSignal).aborted).toBe(false);
  });

  it('ends at its timeout, with an error that has the pool and the session', async () => {
    await using played = await PlayedLease.start();
    const { error, run } = await played.run(never, { timeout: 50 });
    expect(error).toBeInstanceOf(CallbackTimeoutError);
    expect(error).toMatchObject({ timeout: 50, pool: 'test', sessionId: 'session-1' });
    expect(run).toMatchObject({ released: 'destroyed' });
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
      expect(signal.reason).toBeInstanceOf(BrowserLostError);
      return 'value';
    });
    expect(error).toBeInstanceOf(BrowserLostError);
    expect(error).toMatchObject({ reason, pool: 'test', sessionId: 'session-1' });
    expect((error as Error).message).toMatch(text);
    expect(played.told('browser-lost')).toMatchObject([{ sessionId: 'session-1', error }]);
  });

  it.each([
    ['returned', () => 'value'],
    [
      'threw',
      () => {
        throw new Error('mine');
      },
    ],
  ])('is detected through the library after the callback has %s', async (how, callback) => {
    await using played = await PlayedLease.start({ isConnected: () => false });
    const { error, run } = await played.run(callback);
    if (how === 'returned') {
      expect(error).toBeInstanceOf(BrowserLostError);
      expect(error).toMatchObject({ reason: 'closed-by-callback' });
      expect((error as Error).message).toMatch(/the callback closed the browser/);
    } else expect(error).toMatchObject({ message: 'mine' });
    expect(played.told('browser-lost')).toHaveLength(1);
    expect(run).toMatchObject({ released: 'destroyed' });
  });
});

describe('the end of a lease', () => {
  it('cleans up, disconnects and releases, in this order, with an event for each step', async () => {
    await using played = await PlayedLease.start();
    const { run } = await played.run();
    expect(played.steps).toEqual(['cleanup', 'disconnect', 'release']);
    expect(run).toMatchObject({ released: 'reused', cleanupErrors: [], replays: [], replayStatus: 'none' });
    expect(played.told('cleaned-up')).toMatchObject([{ sessionId: 'session-1' }]);
    expect(played.told('cleaned-up')[0]).not.toHaveProperty('error');
    expect(played.told('released')).toMatchObject([
      { pool: 'test', sessionId: 'session-1', released: 'reused' },
    ]);
    expect(played.told('browser-lost')).toEqual([]);
    for (const stage of ['acquire', 'connect', 'callback', 'cleanup', 'release', 'total'] as const)
      expect(run!.timings[stage], stage).toBeTypeOf('number');
  });

  it('closes the socket before the release, whatever the library reports', async () => {
    for (const disconnect of [undefined, () => Promise.reject(new Error('no'))]) {
      await using played = await PlayedLease.start(disconnect && { disconnect });
      let openAtRelease: number | undefined;
      played.service.script('release', async (response) => {
        await expect.poll(() => played.browser.open).toBe(0);
        openAtRelease = played.browser.open;
        response.writeHead(204).end();
      });
      const { run } = await played.run();
      expect(openAtRelease).toBe(0);
      expect(run).toMatchObject({ released: 'reused', cleanupErrors: [] });
    }
  });

  it('destroys a browser whose pages could not be closed, and reports why', async () => {
    const cause = new Error('a dialog');
    await using played = await PlayedLease.start({ cleanup: () => Promise.reject(cause) });
    const { value, run } = await played.run();
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(run!.cleanupErrors).toHaveLength(1);
    const [error] = run!.cleanupErrors;
    expect(error).toBeInstanceOf(CleanupError);
    expect(error).toMatchObject({ sessionId: 'session-1', cause: { message: 'a dialog' } });
    expect(played.told('cleaned-up')).toMatchObject([{ sessionId: 'session-1', error }]);
    expect(played.steps).toEqual(['cleanup', 'disconnect', 'release']);
  });

  it('does not wait for a browser that does not respond', async () => {
    await using played = await PlayedLease.start({
      cleanup: () => {
        vi.advanceTimersByTime(5000);
        vi.useRealTimers();
        return never();
      },
    });
    const { run } = await played.run(undefined, stopTimers());
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(run!.cleanupErrors).toMatchObject([
      { cause: { name: 'CleanupError', sessionId: 'session-1', message: /within 5 s/ } },
    ]);
  });

  it('does not wait for a cleanup whose socket has ended', async () => {
    await using played = await PlayedLease.start({
      cleanup: async () => {
        played.requests[0]!.socket.cut('dropped');
        await never();
      },
    });
    const { run } = await played.run();
    expect(run).toMatchObject({ released: 'destroyed' });
    expect(run!.cleanupErrors).toMatchObject([
      { cause: { name: 'CleanupError', sessionId: 'session-1', message: /ended \(dropped\)/ } },
    ]);
  });

  it('stays connected during the cleanup', async () => {
    await using played = await PlayedLease.start({
      cleanup: async () => {
        played.requests[0]!.socket.send('closing pages');
        await until(() => played.browser.received.length > 0);
        vi.useRealTimers();
      },
    });
    expect((await played.run(undefined, stopTimers())).run).toMatchObject({ released: 'reused' });
    expect(played.browser.received).toEqual(['closing pages']);
  });

  it('cuts the connection of a callback that continues after an abort, and skips the cleanup', async () => {
    await using played = await PlayedLease.start({
      disconnect: async () => played.requests[0]!.socket.send('still at work'),
    });
    const caller = new AbortController();
    const { run } = await played.run(
      () => {
        caller.abort(new Error('stop'));
        return never();
      },
      { signal: caller.signal },
    );
    expect(played.steps).toEqual(['disconnect', 'release']);
    expect(run).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
    expect(played.told('cleaned-up')).toEqual([]);
    expect(await played.requests[0]!.socket.ended).toBe('closed-by-us');
    expect(played.browser.received).toEqual([]);
  });

  it('happens once, and pool.close() waits for it', async () => {
    const played = await PlayedLease.start();
    const lease = await played.lease();
    const [first, second] = [lease.release(), lease.release()];
    await played.pool.close();
    expect(played.releases).toHaveLength(1);
    expect(await first).toBe(await second);
    await played[Symbol.asyncDispose]();
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
});

describe('the option release', () => {
  const release = async (options: RunOptions, callback?: () => unknown, isClean = true) => {
    await using played = await PlayedLease.start(
      isClean ? {} : { cleanup: () => Promise.reject(new Error('no')) },
    );
    const { run } = await played.run(callback, options);
    return { run: run!, releases: played.releases, steps: played.steps };
  };

  it.each([
    ['reuse', true, 'reused', [{ session_id: 'session-1', reuse: true }]],
    ['reuse', false, 'reused', [{ session_id: 'session-1', reuse: true }]],
    ['destroy', true, 'destroyed', [{ session_id: 'session-1', reuse: false }]],
    ['auto', true, 'reused', [{ session_id: 'session-1', reuse: true }]],
    ['auto', false, 'destroyed', [{ session_id: 'session-1', reuse: false }]],
    ['leave', true, 'left', []],
  ] as const)('%s of a browser whose cleanup succeeds: %j', async (choice, isClean, released, releases) => {
    const outcome = await release({ release: choice }, undefined, isClean);
    expect(outcome.run.released).toBe(released);
    expect(outcome.releases).toEqual(releases);
    // A browser that is left keeps its pages.
    expect(outcome.steps.includes('cleanup')).toBe(choice !== 'leave');
  });

  it('may be a function, which receives the outcome of the lease', async () => {
    const seen: LeaseOutcome[] = [];
    const choose = (outcome: LeaseOutcome) => {
      seen.push(outcome);
      return 'destroy' as const;
    };
    const mine = new Error('mine');
    await release({ release: choose });
    const failed = await release({ release: choose }, () => Promise.reject(mine), false);
    expect(failed.run.released).toBe('destroyed');
    expect(seen).toMatchObject([
      { status: 'ok', healthy: true, session: { session_id: 'session-1' } },
      { status: 'failed', error: mine, healthy: false, session: { session_id: 'session-1' } },
    ]);
    expect(seen[0]).not.toHaveProperty('error');
  });

  it.each([
    [true, 'reused'],
    [false, 'destroyed'],
  ])('falls back to auto when the function throws; healthy: %j', async (isClean, released) => {
    const mine = new Error('mine');
    const choose = () => {
      throw mine;
    };
    const { run } = await release({ release: choose }, undefined, isClean);
    expect(run.released).toBe(released);
    expect(run.cleanupErrors).toContain(mine);
  });
});

describe('the option awaitRelease', () => {
  it.each([
    ['returns a value', () => 'value'],
    ['throws', () => Promise.reject(new Error('mine'))],
  ])(
    'ends a run that %s while its release is under way; pool.close() waits for the release',
    async (_what, fn) => {
      await using played = await PlayedLease.start();
      let answer!: () => void;
      const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
      played.service.script('release', async (response) => {
        await mayAnswer;
        response.writeHead(204).end();
      });
      const { run } = await played.run(fn, { awaitRelease: false });
      expect(run).toMatchObject({ released: 'pending', session: { session_id: 'session-1' } });
      expect(played.told('released')).toEqual([]);
      let hasClosed = false;
      const closed = played.pool.close().then(() => (hasClosed = true));
      await sleep(50);
      expect(hasClosed).toBe(false);
      answer();
      await closed;
      expect(played.told('released')).toMatchObject([{ sessionId: 'session-1', released: 'reused' }]);
    },
  );

  it('reports a release that failed after the run', async () => {
    await using played = await PlayedLease.start();
    played.service.script('release', { status: 403 });
    const { value } = await played.run(undefined, { awaitRelease: false });
    expect(value).toBe('value');
    await played.pool.close();
    expect(played.told('release-failed')).toMatchObject([{ error: { code: 'ERR_RELEASE' } }]);
  });

  it('has no effect on a browser that is left', async () => {
    await using played = await PlayedLease.start();
    const { run } = await played.run(undefined, { awaitRelease: false, release: 'leave' });
    expect(run).toMatchObject({ released: 'left' });
    expect(played.releases).toEqual([]);
  });
});

describe('the replays of a lease', () => {
  it('are emitted and returned', async () => {
    await using played = await PlayedLease.start();
    const ours = { replay_id: 'ours', finished_at: '2026-01-02T00:00:00Z' };
    played.service.script('replays', { status: 200, json: [] }, { status: 200, json: [ours] });
    const { run } = await played.run();
    expect(run).toMatchObject({ replays: [ours], replayStatus: 'ready', cleanupErrors: [] });
    const told = played.told('replays');
    expect(told).toMatchObject([{ sessionId: 'session-1', replays: [ours], status: 'ready' }]);
    expect(told[0]).not.toHaveProperty('error');
  });

  it('are reported with the reason if they could not be listed, and the run does not fail', async () => {
    await using played = await PlayedLease.start();
    played.service.script('replays', { status: 500 });
    const { value, run } = await played.run();
    expect(value).toBe('value');
    expect(run).toMatchObject({ replays: [], replayStatus: 'unavailable', released: 'reused' });
    expect(run!.cleanupErrors).toMatchObject([{ status: 500 }]);
    expect(played.told('replays')).toMatchObject([{ status: 'unavailable', error: { status: 500 } }]);
  });

  it('are neither requested nor emitted with replays: off', async () => {
    await using played = await PlayedLease.start();
    const { run } = await played.run(undefined, { replays: 'off' });
    expect(run).toMatchObject({ replays: [], replayStatus: 'off' });
    expect(played.service.of('replays')).toEqual([]);
    expect(played.told('replays')).toEqual([]);
  });
});

describe('leaseBrowser', () => {
  it('returns everything that a callback receives, and ends by release() or with its block', async () => {
    await using played = await PlayedLease.start();
    const lease = await played.lease();
    expect(lease).toMatchObject({ page: 'a page', session: { session_id: 'session-1' } });
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toMatchObject({ released: 'reused', acquireAttempts: 1 });
    {
      await using inBlock = await played.lease();
      expect([inBlock.page, played.releases.length]).toEqual(['a page', 1]);
    }
    expect(played.releases).toHaveLength(2);
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

describe('a run', () => {
  it('fails when the signal aborts during the cleanup, and runOf returns the run', async () => {
    await using played = await PlayedLease.start();
    const caller = new AbortController();
    const reason = new Error('left');
    const { error, run } = await played.run(undefined, {
      signal: caller.signal,
      onEvent: ({ type }) => type === 'cleaned-up' && caller.abort(reason),
    });
    expect(error).toBe(reason);
    expect(run).toMatchObject({ released: 'reused', session: { session_id: 'session-1' } });
    expect(run).not.toHaveProperty('value');
  });

  it('reports a failed release, and still returns its value', async () => {
    await using played = await PlayedLease.start();
    played.service.script('release', { status: 403 });
    const { value, run } = await played.run();
    expect(value).toBe('value');
    expect(run).toMatchObject({ released: 'failed', cleanupErrors: [{ code: 'ERR_RELEASE' }] });
    expect(played.told('release-failed')).toMatchObject([
      { pool: 'test', sessionId: 'session-1', error: run!.cleanupErrors[0] },
    ]);
    expect(played.told('released')).toEqual([]);
  });

  it.each(['reuse', 'destroy'] as const)(
    'counts a browser that no longer exists as destroyed, with release: %s',
    async (release) => {
      await using played = await PlayedLease.start();
      played.service.script('release', { status: 404 });
      const { run } = await played.run(undefined, { release });
      expect(run).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
      expect(played.told('released')).toMatchObject([{ released: 'destroyed' }]);
    },
  );

  it('ends the release at releaseTimeout', async () => {
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
