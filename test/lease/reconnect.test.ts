import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  BrowserLostError,
  ConnectionDroppedError,
  leaseBrowser,
  type HeldLeaseOptions,
  type RunEvent,
} from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { watchTimers } from '../support/fake-clock.js';
import { FaultRoad, join, refuse } from '../support/fault-road.js';
import { PlayedLease } from '../support/played-lease.js';

const EAGER = { reconnect: 'eager' } as const;
const LAZY = { reconnect: 'lazy' } as const;

const never = () => new Promise<never>(() => {});

type Steps = Parameters<typeof PlayedLease.start>[0];

/** A lease whose network connection can fail. */
async function hold(options: HeldLeaseOptions = {}, steps: Steps = {}, fields: Record<string, unknown> = {}) {
  const played = await PlayedLease.start(steps);
  const road = await FaultRoad.start();
  const cdp_ws_url = road.to(played.browser.url);
  played.service.script('acquire', { status: 200, json: played.session({ cdp_ws_url, ...fields }) });
  const events: RunEvent[] = [];
  const onEvent = (event: RunEvent) => {
    events.push(event);
    options.onEvent?.(event);
  };
  const { pool, connector } = played;
  const lease = await leaseBrowser(pool, { replays: 'off', ...options, connector, onEvent });
  const types = () => events.map(({ type }) => type);
  const told = async (type: RunEvent['type']) => {
    await expect.poll(types).toContain(type);
    return events.find((event) => event.type === type)!;
  };
  const dispose = async () => {
    await lease.release();
    await played[Symbol.asyncDispose]();
    await road[Symbol.asyncDispose]();
  };
  return { played, road, lease, types, told, [Symbol.asyncDispose]: dispose };
}

describe('a lease with reconnect', () => {
  it('continues after a lost connection, with the handles of the new one and the same page', async () => {
    await using held = await hold(EAGER);
    const { played, lease } = held;
    expect(await lease.use(({ page }) => page)).toBe('a page');
    held.road.lose('reset');
    expect(await held.told('connection-dropped')).toMatchObject({
      sessionId: 'session-1',
      reason: 'dropped',
    });
    expect(await held.told('reconnected')).toMatchObject({ sessionId: 'session-1' });
    expect(await lease.use(({ page }) => page)).toBe('a page');
    // The new connection may be lost, too.
    held.road.lose('reset');
    await expect.poll(() => held.types().filter((type) => type === 'reconnected')).toHaveLength(2);
    expect(lease.signal.aborted).toBe(false);
    expect(played.requests).toHaveLength(3);
    expect(await lease.release()).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(held.types()).not.toContain('browser-lost');
  });

  it('fails a call that was under way, and does not repeat it', async () => {
    await using held = await hold(EAGER);
    let calls = 0;
    const call = rejection(held.lease.use(() => (calls++, never())));
    held.road.lose('reset');
    const error = await call;
    expect(error).toBeInstanceOf(ConnectionDroppedError);
    expect(error).toMatchObject({ pool: 'test', sessionId: 'session-1' });
    expect(await held.lease.use(() => calls)).toBe(1);
  });

  it('repeats a reconnect that fails', async () => {
    await using held = await hold(EAGER);
    held.road.play(refuse(503), join);
    held.road.lose('end');
    await held.told('connection-dropped');
    expect(await held.lease.use(() => 'value')).toBe('value');
    expect(held.road.dialled).toBe(3);
  });

  it('pauses longer and longer when each connection breaks as soon as it is open', async () => {
    await using held = await hold({
      ...EAGER,
      onEvent: ({ type }) => type === 'reconnected' && held?.road.lose('reset'),
    });
    held.road.lose('reset');
    await sleep(3000);
    const connections = held.types().filter((type) => type === 'reconnected').length;
    // Without a pause there are a hundred.
    expect(connections).toBeGreaterThan(0);
    expect(connections).toBeLessThan(12);
    expect(held.lease.signal.aborted).toBe(false);
  });

  it('connects only at the next use with lazy', async () => {
    await using held = await hold(LAZY);
    held.road.lose('reset');
    await held.told('connection-dropped');
    await sleep(50);
    expect(held.played.requests).toHaveLength(1);
    await held.lease.use(() => {});
    await held.lease.use(() => {});
    expect(held.played.requests).toHaveLength(2);
  });

  it.each(['the session expired', 'the service refuses the session'])(
    'loses its browser as expired when %s',
    async (why) => {
      await using held = await hold(EAGER);
      const { road, lease } = held;
      if (why === 'the session expired') road.close(1001, 'session expired');
      else {
        road.play(refuse(404));
        road.lose('reset');
      }
      expect(await held.told('browser-lost')).toMatchObject({ error: { reason: 'expired' } });
      const { reason } = lease.signal;
      expect(reason).toBeInstanceOf(BrowserLostError);
      for (const call of [lease.use(() => 1), lease.reconnect()]) expect(await rejection(call)).toBe(reason);
      expect(await lease.release()).toMatchObject({ released: 'destroyed' });
    },
  );

  it('loses its browser when no connection succeeds while its session lasts', async () => {
    let connects = 0;
    const connect = async () => {
      if (++connects > 1) throw new Error('no');
    };
    await using held = await hold(EAGER, { connect }, { timeout_seconds: 1 });
    held.road.lose('reset');
    expect(await held.told('browser-lost')).toMatchObject({ error: { reason: 'dropped' } });
    expect(held.lease.signal.reason).toMatchObject({ cause: { name: 'ConnectError' } });
    expect(connects).toBeGreaterThan(2);
  });

  it('is released once during a reconnect, and opens no connection afterwards', async () => {
    let connects = 0;
    let finish!: () => void;
    const connect = async () => {
      if (++connects === 2) await new Promise<void>((resolve) => (finish = resolve));
    };
    await using held = await hold(EAGER, { connect });
    held.road.lose('reset');
    await expect.poll(() => connects).toBe(2);
    expect(await held.lease.release()).toMatchObject({ released: 'destroyed' });
    finish();
    await expect.poll(() => held.played.browser.open).toBe(0);
    expect(held.played.releases).toEqual([{ session_id: 'session-1', reuse: false }]);
    expect(held.types()).not.toContain('reconnected');
  });

  it('closes a connection that opens at the moment of its release', async () => {
    for (let ticks = 0; ticks < 8; ticks++) {
      let connects = 0;
      const onEvent = async ({ type }: RunEvent) => {
        if (type !== 'connected' || ++connects < 2) return;
        for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
        void held.lease.release();
      };
      await using held = await hold({ ...EAGER, onEvent });
      held.road.lose('reset');
      await held.told('ended');
      await expect.poll(() => held.played.browser.open, { message: `${ticks} microtasks` }).toBe(0);
    }
  });

  it.each([
    [1, 500, 500],
    [3600, 3_590_000, 10_000],
  ])(
    'warns before the service ends a session of %d s without a connection',
    async (seconds, pause, timeLeft) => {
      const start = watchTimers();
      await using held = await hold(LAZY, {}, { timeout_seconds: seconds });
      const warnings = () => start.mock.calls.filter(([, delay]) => delay === pause);
      expect(warnings()).toEqual([]);
      held.road.lose('reset');
      await held.told('connection-dropped');
      warnings()[0]![0]();
      expect(await held.told('session-expiring')).toMatchObject({ sessionId: 'session-1', timeLeft });
    },
  );
});

describe('reconnect()', () => {
  it('replaces the connection once for several calls, without the option', async () => {
    const handles = { page: 'first' };
    await using held = await hold({}, { handles });
    const { played, lease } = held;
    handles.page = 'second';
    await Promise.all([lease.reconnect(), lease.reconnect()]);
    expect(played.requests).toHaveLength(2);
    expect(lease.page).toBe('second');
    await expect.poll(() => played.browser.open).toBe(1);
    expect(lease.signal.aborted).toBe(false);
  });

  it('fails the calls that use the old connection', async () => {
    await using held = await hold();
    const call = rejection(held.lease.use(never));
    await held.lease.reconnect();
    expect(await call).toBeInstanceOf(ConnectionDroppedError);
  });

  it('rejects after the end of the lease, as every other use of the lease does', async () => {
    await using held = await hold();
    const { lease } = held;
    const during = rejection(lease.use(never));
    await lease.release();
    const after = [lease.reconnect(), lease.use(() => 'value'), lease.detach()].map(rejection);
    for (const error of await Promise.all([during, ...after]))
      expect(error).toMatchObject({ code: 'ERR_LEASE_OVER', sessionId: 'session-1' });
    expect(held.played.requests).toHaveLength(1);
  });
});
