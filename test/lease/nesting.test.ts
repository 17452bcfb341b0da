import { expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool, NestedLeaseError } from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

const record = (acquired_count?: number, size?: number) => ({
  status: 200,
  json: { id: 'pool-1', name: 'test', acquired_count, browser_pool_config: { size } },
});

/** The error of a lease inside a lease, from a pool without a second browser, with this pool record. */
async function nest(pool: { status: number; json?: object }, session = {}, idOrName = 'test') {
  await using played = await PlayedLease.start();
  played.service.script('acquire', { status: 200, json: played.session(session) }, { status: 204 });
  played.service.script('pool', pool);
  await using known = new BrowserPool(idOrName, played.service.options);
  const options = { acquireTimeout: 250 };
  const { value } = await played.run(() => played.run(undefined, options, known));
  return (value as { error: Error }).error;
}

it('a lease inside a lease fails when every browser of the pool is held by a call that waits like this', async () => {
  const error = await nest(record(1, 1));
  expect(error).toBeInstanceOf(NestedLeaseError);
  expect(error).toMatchObject({ outerSessionId: 'session-1', pool: 'test' });
  expect(error.message).toContain('all leased browsers (1) are held');
});

it.each([
  ['the pool is filling up', record(1, 2)],
  ['another lease may end', record(2, 2)],
  ['the service does not report how many are leased', record(undefined, 1)],
  ['the service does not report the size of the pool', record(1)],
  ['the service has no pool record', { status: 404 }],
])('a lease inside a lease waits until its timeout while %s', async (_why, pool) => {
  const error = await nest(pool, { name: 'crawler-7' });
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(error.message).toContain('inside the lease of session session-1 (crawler-7) of the same pool');
});

it.each(['id', 'name'])('the pool of the outer lease is recognized by its %s, too', async (field) => {
  const session = { pool: { id: 'pool-1', name: 'a-name', [field]: 'known-as' } };
  expect((await nest(record(1, 2), session, 'known-as')).message).toContain('inside the lease');
  expect((await nest(record(1, 2), session, 'another')).message).not.toContain('inside the lease');
});

it('only a lease inside a lease of the same pool reads the pool record', async () => {
  await using played = await PlayedLease.start();
  await using other = await PlayedLease.start();
  await played.run(() => other.run());
  await played.run();
  for (const { service } of [played, other]) expect(service.of('pool')).toEqual([]);
});
