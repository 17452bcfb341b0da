import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { readLeaseOptions, runChecks } from '../../src/calls/options.js';
import type { Connector } from '../../src/drivers/connector.js';
import { type RunOptions, runOf } from '../../src/index.js';
import { loadDrivers } from '../../src/calls/load-drivers.js';
import type { FeatureSet, LeaseFeature, WorkEnd } from '../../src/lease/feature.js';
import { attachLease } from '../../src/lease/attach-lease.js';
import { openLease } from '../../src/lease/open-lease.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';
import { type PlayedHandles, PlayedLease } from '../support/played-lease.js';

const never = () => new Promise<never>(() => {});
const throws = () => {
  throw new Error('mine');
};

/** What each lease of these tests needs, with these features. */
function planOf<Features extends FeatureSet>(
  { pool, connector }: PlayedLease,
  features: Features,
  options: RunOptions = {},
) {
  const settings = readLeaseOptions(runChecks, options, { caller: 'test', connector });
  return { pools: [pool] as const, settings, connector, loadDrivers, features };
}

/** Runs one callback in a lease with one feature, and returns the summary. */
async function runWith(
  played: PlayedLease,
  feature: Partial<LeaseFeature>,
  fn: () => unknown = () => 'value',
) {
  const features = { mine: { timeout: 50, ...feature } };
  const lease = await openLease(planOf(played, features));
  try {
    await lease.beginRun();
    await lease.runCallback(fn);
    return await lease.end({ status: 'ok' });
  } catch (error) {
    await lease.end({ status: 'failed', error });
    throw error;
  }
}

it.each(['prepare', 'request'] as const)('a feature that fails in %s costs no lease', async (hook) => {
  await using played = await PlayedLease.start();
  await expect(runWith(played, { [hook]: throws })).rejects.toThrow('mine');
  expect(played.service.of('acquire')).toHaveLength(0);
});

it.each(['connect', 'begin'] as const)(
  'a feature that fails in %s fails the call, and its browser is released',
  async (hook) => {
    await using played = await PlayedLease.start();
    await expect(runWith(played, { [hook]: throws })).rejects.toThrow('mine');
    // A connect that fails is tried on another browser.
    expect(played.releases).toHaveLength(hook === 'connect' ? 2 : 1);
  },
);

it('a feature works in an opened lease, once, before the callback', async () => {
  await using played = await PlayedLease.start();
  const seen: unknown[] = [];
  const begin: LeaseFeature['begin'] = async ({ kind, lease, connection }) => {
    seen.push(kind, lease.sessionId, connection !== undefined);
    return undefined;
  };
  await runWith(played, { begin }, () => seen.push('callback'));
  expect(seen).toEqual(['lease', 'session-1', true, 'run', 'session-1', true, 'callback']);
});

it.each(['leased', 'summary'] as const)(
  'a feature that fails in %s neither fails the call nor keeps the browser',
  async (hook) => {
    await using played = await PlayedLease.start();
    const feature =
      hook === 'summary' ? Object.defineProperty({}, hook, { get: throws }) : { [hook]: throws };
    const summary = await runWith(played, feature);
    expect(summary).toMatchObject({ released: 'reused' });
    expect(played.releases).toHaveLength(1);
  },
);

it('what other features began is ended without a result if one cannot begin', async () => {
  await using played = await PlayedLease.start();
  const ends: unknown[] = [];
  const begin = async () => async (end: unknown) => {
    ends.push(end);
    return {};
  };
  const fails: LeaseFeature['begin'] = async ({ kind }) => (kind === 'task' ? throws() : undefined);
  const features = { one: { begin }, two: { begin: fails } };
  const lease = await openLease(planOf(played, features));
  const beginning = lease.beginWork({ kind: 'task', handles: {}, scope: 'page' });
  await expect(beginning).rejects.toThrow('mine');
  expect(ends).toEqual([undefined]);
  await lease.end({ status: 'ok' });
});

it('the end begins when all features have ended a hook in which one fails', async () => {
  await using played = await PlayedLease.start();
  const begin = async () => {
    await sleep(50);
    played.steps.push('begun');
    return undefined;
  };
  const features = { one: { begin: throws }, two: { begin } };
  await expect(openLease(planOf(played, features, { replays: 'off' }))).rejects.toThrow('mine');
  expect(played.steps[0]).toBe('begun');
  expect(played.steps).toContain('release');
});

it('an addition to the connect that fails lets the connect cut those of other features', async () => {
  await using played = await PlayedLease.start();
  let signal: AbortSignal | undefined;
  const later: LeaseFeature['connect'] = async (_lease, opening) => {
    await sleep(50);
    signal = opening.signal;
    return {};
  };
  const features = { one: { connect: async () => throws() }, two: { connect: later } };
  const options: RunOptions = { connectAttempts: 1 };
  await expect(openLease(planOf(played, features, options))).rejects.toThrow('mine');
  expect(signal?.aborted).toBe(true);
});

it('two features that add the same field to the request fail the call, which names both', async () => {
  await using played = await PlayedLease.start();
  const request = () => ({ record: true });
  const opening = openLease(planOf(played, { one: { request }, two: { request } }));
  await expect(opening).rejects.toThrow('The features one and two both add record');
  expect(played.service.of('acquire')).toHaveLength(0);
});

it('a feature that prevents the reuse of its browser has the browser destroyed, and reports why', async () => {
  await using played = await PlayedLease.start();
  const stop: LeaseFeature['stop'] = async ({ lease }) => lease.preventReuse('Mine is left.', undefined);
  const summary = await runWith(played, { stop });
  expect(summary).toMatchObject({ released: 'destroyed', cleanupErrors: [{ message: 'Mine is left.' }] });
});

it('the parts of a feature are in the summary, and the time of its stage in the timings', async () => {
  await using played = await PlayedLease.start();
  const begin: LeaseFeature['begin'] = async () => async () => ({ files: ['a'] });
  const stop: LeaseFeature['stop'] = ({ lease }) => lease.time('mine', () => sleep(20));
  const feature = { summary: { mine: 1 }, begin, stop };
  const summary = await runWith(played, feature);
  expect(summary).toMatchObject({ mine: 1, files: ['a'] });
  expect(summary.timings['mine']).toBeGreaterThan(0);
});

it('after a timeout, the connection stays open until the work has ended, and no longer', async () => {
  await using played = await PlayedLease.start();
  const seen: string[] = [];
  const socket = () => played.requests[0]!.socket;
  let isCut = false;
  const mine: LeaseFeature = {
    begin: async () => async () => {
      await sleep(10);
      seen.push(`end of the work: ${isCut ? 'cut' : 'open'}`);
      return {};
    },
    stop: async () => {
      await socket().ended;
      seen.push('stop: cut');
    },
  };
  const lease = await openLease(planOf(played, { mine }, { timeout: 20 }));
  void socket().ended.then(() => (isCut = true));
  await lease.beginRun();
  const error: unknown = await lease.runCallback(never).catch((thrown: unknown) => thrown);
  await lease.end({ status: 'failed', error });
  expect(seen).toEqual(['end of the work: open', 'stop: cut']);
});

it('a run ends with its lease, also if the pool is closed while the run begins', async () => {
  await using played = await PlayedLease.start();
  const ends: (WorkEnd | undefined)[] = [];
  const begin: LeaseFeature['begin'] = async ({ kind }) => {
    if (kind === 'lease') return undefined;
    void played.pool.close();
    await sleep(10);
    return async (end) => ({ ends: ends.push(end) });
  };
  await expect(runWith(played, { begin })).rejects.toThrow(/closed/);
  expect(ends).toMatchObject([{ failed: true, isReachable: false }]);
});

it('a feature that prevents a detachment leaves the lease as it is', async () => {
  await using played = await PlayedLease.start();
  const mine: LeaseFeature = { needs: { thisProcess: 'Not with mine.' } };
  const lease = await openLease(planOf(played, { mine }));
  await expect(lease.detach()).rejects.toMatchObject({ option: 'detach', message: 'Not with mine.' });
  await expect(lease.runCallback(() => 'value')).resolves.toBe('value');
  await lease.end({ status: 'ok' });
});

it('an option of the lease acts once, however many tasks the lease runs', async () => {
  await using played = await PlayedLease.start();
  const calls: string[] = [];
  const mine: LeaseFeature = {
    leased: () => void calls.push('leased'),
    begin: async ({ kind }) => {
      calls.push(kind);
      return undefined;
    },
    stop: async () => void calls.push('stop'),
  };
  const lease = await openLease({ ...planOf(played, { mine }), isForTasks: true });
  for (const index of [0, 1]) {
    const endWork = await lease.beginWork({ kind: 'task', handles: {}, scope: 'page' });
    await lease.runCallback(() => 'value', { index });
    await endWork({ name: 'task', failed: false, isReachable: true });
  }
  await lease.end({ status: 'ok' });
  expect(calls).toEqual(['leased', 'task', 'task', 'stop']);
});

it('what a feature saves at the end of a process is restored in the process that continues the lease', async () => {
  await using played = await PlayedLease.start();
  const restored: unknown[] = [];
  const mine: LeaseFeature = {
    finish: async () => ({ saved: { at: 7 } }),
    leased: (_lease, saved) => void restored.push(saved),
  };
  const lease = await openLease(planOf(played, { mine }));
  const detachedState = await lease.detach();
  expect(detachedState.features).toEqual({ mine: { at: 7 } });
  const next = await attachLease(planOf(played, { mine }), detachedState);
  expect(restored).toEqual([undefined, { at: 7 }]);
  await next.end({ status: 'ok' });
  expect(played.releases).toHaveLength(1);
});

it('a feature that can not save does not lose the browser of a detached lease', async () => {
  await using played = await PlayedLease.start();
  const mine: LeaseFeature = { finish: throws };
  const other: LeaseFeature = { finish: async () => ({ saved: 7 }) };
  const { settings, ...plan } = planOf(played, { mine, other });
  const errors: unknown[] = [];
  const onEvent = (event: { type: string; summary?: { cleanupErrors: readonly Error[] } }) =>
    void errors.push(...(event.summary?.cleanupErrors ?? []));
  const lease = await openLease({ ...plan, settings: { ...settings, onEvent } });
  const detachedState = await lease.detach();
  expect(detachedState.features).toEqual({ mine: undefined, other: 7 });
  expect(errors).toMatchObject([{ message: 'The feature mine failed (finish): mine' }]);
  const next = await attachLease(planOf(played, { other }), detachedState);
  await next.end({ status: 'ok' });
  expect(played.releases).toHaveLength(1);
});

it('a lease that can not be continued ends its call, and stays as it is', async () => {
  await using played = await PlayedLease.start();
  const lease = await openLease(planOf(played, {}));
  const detachedState = await lease.detach();
  const ended: string[] = [];
  const onEvent = ({ type }: { type: string }) => void (type === 'ended' && ended.push(type));
  const broken = { prepare: throws };
  const error: unknown = await attachLease(planOf(played, { broken }, { onEvent }), {
    ...detachedState,
    features: { mine: 'saved' },
  }).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ message: 'mine' });
  expect(ended).toEqual(['ended']);
  expect(runOf(error)).toMatchObject({ acquireAttempts: 0 });
  expect(played.releases).toEqual([]);
  const next = await attachLease(planOf(played, {}), detachedState);
  await next.end({ status: 'ok' });
  expect(played.releases).toHaveLength(1);
});

describe('the end of a lease', () => {
  /** More than each limit of a step, in ms. */
  const LONG = 20_000;

  type Fault = () => Promise<never>;

  /** What a step can do instead of its work. `hangs` ends its time at once. */
  const FAULTS: readonly [how: string, fault: Fault][] = [
    [
      'throws',
      () => {
        throw new Error('mine');
      },
    ],
    ['rejects', () => Promise.reject(new Error('mine'))],
    ['throws undefined', () => Promise.reject(undefined)],
    [
      'hangs',
      () => {
        vi.advanceTimersByTime(LONG);
        useRealClock();
        return new Promise<never>(() => {});
      },
    ],
  ];

  /** A step of the end, what breaks there, and what happens to the browser. */
  const STEPS: readonly [
    step: string,
    breaks: (fault: Fault) => {
      feature?: Partial<LeaseFeature>;
      steps?: Parameters<typeof PlayedLease.start>[0];
    },
    released: 'reused' | 'destroyed',
  ][] = [
    [
      'the end of the run',
      (fault) => ({ feature: { begin: async ({ kind }) => (kind === 'run' ? fault : undefined) } }),
      'destroyed',
    ],
    ['stop', (stop) => ({ feature: { stop } }), 'destroyed'],
    ['finish', (finish) => ({ feature: { finish } }), 'reused'],
    ['the cleanup of the library', (cleanup) => ({ steps: { cleanup } }), 'destroyed'],
    ['the disconnect of the library', (disconnect) => ({ steps: { disconnect } }), 'reused'],
    [
      'what follows the release',
      (released) => ({ feature: { finish: async () => ({ released }) } }),
      'reused',
    ],
  ];

  /** The ways in which the three connections differ. */
  const CONNECTIONS: readonly [
    name: string,
    connector: Pick<Connector, 'savesDownloads'>,
    options: RunOptions,
  ][] = [
    ['Playwright', { savesDownloads: true }, { protocol: 'cdp' }],
    ['Puppeteer over CDP', {}, { protocol: 'cdp' }],
    ['Puppeteer over BiDi', {}, { protocol: 'bidi' }],
  ];

  describe.each(CONNECTIONS)('%s', (_name, kind, options) => {
    const table = STEPS.flatMap(([step, breaks, released]) =>
      FAULTS.map(([how, fault]) => [step, how, breaks(fault), released] as const),
    );

    it.each(table)('releases the browser if %s %s', async (_step, _how, { feature, steps }, released) => {
      await using played = await PlayedLease.start(steps);
      const connector: Connector<PlayedHandles> = { ...played.connector, ...kind };
      const given: RunOptions = { ...options, replays: 'off' };
      const settings = readLeaseOptions(runChecks, given, { caller: 'test', connector });
      const features = { mine: { ...feature } };
      const lease = await openLease({ pools: [played.pool], settings, connector, loadDrivers, features });
      await lease.beginRun();
      expect(await lease.runCallback(() => 'value')).toBe('value');
      useFakeClock({ toFake: ['setTimeout'] });
      const summary = await lease.end({ status: 'ok' });
      expect(summary).toMatchObject({ released, cleanupErrors: [{ name: 'CleanupError' }] });
      expect(summary.cleanupErrors).toHaveLength(1);
      expect(played.releases).toEqual([{ session_id: 'session-1', reuse: released === 'reused' }]);
    });
  });

  it('the steps follow each other, and each waits for the features', async () => {
    await using played = await PlayedLease.start();
    const log = (name: string) => async () => void played.steps.push(name);
    const finish = async () => {
      await log('finish')();
      return { released: log('released') };
    };
    const connector = played.connector;
    const given: RunOptions = { replays: 'off' };
    const settings = readLeaseOptions(runChecks, given, { caller: 'test', connector });
    const features = { mine: { stop: log('stop'), finish } };
    const lease = await openLease({ pools: [played.pool], settings, connector, loadDrivers, features });
    await lease.end({ status: 'ok' });
    expect(played.steps).toEqual(['stop', 'cleanup', 'finish', 'disconnect', 'release', 'released']);
  });
});
