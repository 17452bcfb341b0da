import { describe, expect, it, vi } from 'vitest';
import { readLeaseOptions, runChecks } from '../../src/calls/options.js';
import type { Connector } from '../../src/connect/connector.js';
import type { RunOptions } from '../../src/index.js';
import type { LeaseFeature } from '../../src/lease/feature.js';
import { Lease } from '../../src/lease/lease.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';
import { PlayedLease, type PlayedHandles } from '../support/played-lease.js';

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
  ['the end of the run', (fault) => ({ feature: { begin: async () => fault } }), 'destroyed'],
  ['stop', (stop) => ({ feature: { stop } }), 'destroyed'],
  ['collect', (collect) => ({ feature: { collect } }), 'destroyed'],
  ['cleaning', (cleaning) => ({ feature: { cleaning } }), 'reused'],
  ['the cleanup of the library', (cleanup) => ({ steps: { cleanup } }), 'destroyed'],
  ['the disconnect of the library', (disconnect) => ({ steps: { disconnect } }), 'reused'],
  ['released', (released) => ({ feature: { released } }), 'reused'],
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
    const features = { mine: { name: 'mine', ...feature } };
    const lease = await Lease.open({ pools: [played.pool], settings, connector, features });
    const work = await lease.begin({ kind: 'run', handles: {}, scope: 'browser' });
    expect(await lease.call(() => 'value')).toBe('value');
    useFakeClock({ toFake: ['setTimeout'] });
    const summary = await lease.end({ status: 'ok', work });
    expect(summary).toMatchObject({ released, cleanupErrors: [{ name: 'CleanupError' }] });
    expect(summary.cleanupErrors).toHaveLength(1);
    expect(played.releases).toEqual([{ session_id: 'session-1', reuse: released === 'reused' }]);
  });
});

it('the steps follow each other, and each waits for the features', async () => {
  await using played = await PlayedLease.start();
  const log = (name: string) => async () => void played.steps.push(name);
  const names = ['stop', 'collect', 'cleaning', 'released'] as const;
  const hooks = Object.fromEntries(names.map((name) => [name, log(name)]));
  const connector = played.connector;
  const given: RunOptions = { replays: 'off' };
  const settings = readLeaseOptions(runChecks, given, { caller: 'test', connector });
  const features = { mine: { name: 'mine', ...hooks } };
  const lease = await Lease.open({ pools: [played.pool], settings, connector, features });
  await lease.end({ status: 'ok' });
  expect(played.steps).toEqual([
    'stop',
    'collect',
    'cleanup',
    'cleaning',
    'disconnect',
    'release',
    'released',
  ]);
});
