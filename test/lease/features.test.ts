import { describe, expect, it } from 'vitest';
import { readLeaseOptions, runChecks } from '../../src/calls/options.js';
import type { Connector } from '../../src/connect/connector.js';
import type { LeaseFeature } from '../../src/lease/feature.js';
import { Lease } from '../../src/lease/lease.js';
import type { RunOptions } from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

const OPTIONS: RunOptions = { replays: 'off' };

const never = () => new Promise<never>(() => {});
const throws = () => {
  throw new Error('mine');
};
const rejects = () => Promise.reject(new Error('mine'));

/** Runs one callback in a lease with this feature, and returns its summary. */
async function runWith(
  played: PlayedLease,
  feature: Partial<LeaseFeature>,
  fn: () => unknown = () => 'value',
) {
  const connector: Connector<{ page: string }> = played.connector;
  const settings = readLeaseOptions(runChecks, OPTIONS, { caller: 'test', connector });
  const features = { mine: { name: 'mine', timeout: 50, ...feature } };
  const lease = await Lease.open({ pools: [played.pool], settings, connector, features });
  let work: Awaited<ReturnType<typeof lease.begin>> | undefined;
  try {
    work = await lease.begin({ kind: 'run', handles: {}, scope: 'browser' });
    await lease.call(fn);
    return await lease.end({ status: 'ok', work });
  } catch (error) {
    await lease.end({ status: 'failed', error, work });
    throw error;
  }
}

describe.each([
  ['stop', 'destroyed'],
  ['collect', 'destroyed'],
  ['cleaning', 'reused'],
  ['released', 'reused'],
] as const)('a feature whose hook %s', (hook, released) => {
  it.each([
    ['throws', throws],
    ['rejects', rejects],
    ['does not end', never],
  ])('%s neither fails the call nor keeps the browser', async (_how, fault) => {
    await using played = await PlayedLease.start();
    const summary = await runWith(played, { [hook]: fault });
    expect(summary).toMatchObject({ released, cleanupErrors: [{ name: 'CleanupError' }] });
    expect(summary.cleanupErrors[0]!.message).toMatch(/^The feature mine failed/);
    expect(played.releases).toEqual([{ session_id: 'session-1', reuse: released === 'reused' }]);
    expect(played.steps).toEqual(['cleanup', 'disconnect', 'release']);
  });
});

it.each([
  ['throws', throws],
  ['rejects', rejects],
  ['does not end', never],
])('a feature whose end of a run %s neither fails the call nor keeps the browser', async (_how, fault) => {
  await using played = await PlayedLease.start();
  const summary = await runWith(played, { begin: async () => fault });
  expect(summary).toMatchObject({ released: 'destroyed', cleanupErrors: [{ name: 'CleanupError' }] });
  expect(played.releases).toHaveLength(1);
});

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
    expect(played.releases).toHaveLength(1);
  },
);

it('a feature that prevents the reuse of its browser has the browser destroyed, and reports why', async () => {
  await using played = await PlayedLease.start();
  const collect: LeaseFeature['collect'] = async ({ lease }) =>
    lease.preventReuse('Mine is left.', undefined);
  const summary = await runWith(played, { collect });
  expect(summary).toMatchObject({ released: 'destroyed', cleanupErrors: [{ message: 'Mine is left.' }] });
});

it('the steps of the end follow each other, and each waits for the features', async () => {
  await using played = await PlayedLease.start();
  const log = (name: string) => async () => void played.steps.push(name);
  const hooks = {
    stop: log('stop'),
    collect: log('collect'),
    cleaning: log('cleaning'),
    released: log('released'),
  };
  await runWith(played, hooks);
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

it('the parts of a feature are in the summary, also of a call that leased no browser', async () => {
  await using played = await PlayedLease.start();
  const begin: LeaseFeature['begin'] = async () => async () => ({ files: ['a'] });
  expect(await runWith(played, { summary: { mine: 1 }, begin })).toMatchObject({ mine: 1, files: ['a'] });
});

it('a feature whose hook leased throws neither fails the call nor keeps the browser', async () => {
  await using played = await PlayedLease.start();
  const summary = await runWith(played, { leased: throws });
  expect(summary).toMatchObject({ released: 'reused', cleanupErrors: [{ name: 'CleanupError' }] });
});

it('a new feature needs no line of the heart: a lifetime', async () => {
  await using played = await PlayedLease.start();
  const over = new Error('The lifetime of the lease is over.');
  let timer: NodeJS.Timeout | undefined;
  const lifetime: Partial<LeaseFeature> = {
    leased: ({ abort }) => void (timer = setTimeout(() => abort(over), 20)),
    stop: async () => clearTimeout(timer),
  };
  await expect(runWith(played, lifetime, never)).rejects.toBe(over);
  expect(played.releases).toEqual([{ session_id: 'session-1', reuse: false }]);
});
