import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool, NestedLeaseError, type RunOptions } from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

const record = (acquired_count?: number, size?: number) => ({
  status: 200,
  json: { id: 'pool-1', name: 'test', acquired_count, browser_pool_config: { size } },
});

/** A lease inside a lease, from a pool without a second browser, with this pool record. */
async function nest(
  played: PlayedLease,
  pool: object,
  options: RunOptions = { acquireTimeout: 300 },
  fields: Record<string, unknown> = {},
) {
  played.service.script('acquire', { status: 200, json: played.session(fields) }, { status: 204 });
  played.service.script('pool', pool as never);
  const inner = await played.run(() => played.run(undefined, options));
  return (inner.value as { error: Error }).error;
}

describe('a wait for a browser inside a lease of the same pool', () => {
  it('ends when all browsers are held by leases that wait in the same way', async () => {
    await using played = await PlayedLease.start();
    const error = await nest(played, record(1, 1), {});
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
  ])('continues while %s', async (_why, pool) => {
    await using played = await PlayedLease.start();
    const error = await nest(played, pool);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error.message).toContain('inside the lease of session session-1 of the same pool');
    expect(played.service.of('pool').length).toBeGreaterThan(0);
  });

  it('ends immediately, even while a request waits at the service', async () => {
    await using played = await PlayedLease.start();
    played.service.script('acquire', { status: 200, json: played.session() }, () => {});
    played.service.script('pool', record(1, 1));
    const { value } = await played.run(() => played.run());
    expect((value as { error: Error }).error).toBeInstanceOf(NestedLeaseError);
    await played.service.close();
  });

  it('reads the pool record once per request', async () => {
    await using played = await PlayedLease.start();
    const none = { status: 204 } as const;
    const grant = { status: 200, json: played.session() } as const;
    played.service.script('acquire', grant, none, none, none, grant);
    played.service.script('pool', record(1, 2));
    await played.run(() => played.run(undefined, { retry: { minTimeout: 1 } }));
    expect(played.told('acquiring')).toHaveLength(5);
    expect(played.service.of('pool').length).toBeLessThanOrEqual(4);
  });

  it('does not count the waits for another pool', async () => {
    await using played = await PlayedLease.start();
    await using other = await PlayedLease.start();
    const errors = await Promise.all([nest(played, record(2, 2)), nest(other, record(2, 2))]);
    for (const error of errors) expect(error).toBeInstanceOf(AcquireTimeoutError);
  });

  it('names its outer lease', async () => {
    await using played = await PlayedLease.start();
    const error = await nest(played, record(1, 2), undefined, { name: 'crawler-7' });
    expect(error.message).toContain('session-1 (crawler-7)');
  });

  it('does not count waits that have ended', async () => {
    await using played = await PlayedLease.start();
    await nest(played, record(2, 2));
    expect(await nest(played, record(2, 2))).toBeInstanceOf(AcquireTimeoutError);
  });
});

describe('a call that is not inside a lease of the same pool', () => {
  it('does not read the pool record', async () => {
    await using played = await PlayedLease.start();
    await played.run();
    expect(played.service.of('pool')).toEqual([]);
  });

  it('may be inside a lease of another pool, or of another service', async () => {
    await using played = await PlayedLease.start();
    await using other = await PlayedLease.start();
    const elsewhere = new BrowserPool('elsewhere', played.service.options);
    await played.run(() => other.run());
    await played.run(() => played.run(undefined, {}, elsewhere));
    for (const { service } of [played, other]) expect(service.of('pool')).toEqual([]);
    await elsewhere.close();
  });

  it('may follow it', async () => {
    await using played = await PlayedLease.start();
    await played.run();
    played.service.script('acquire', { status: 204 });
    const { error } = await played.run(undefined, { acquireTimeout: 100 });
    expect((error as Error).message).not.toContain('inside the lease');
    expect(played.service.of('pool')).toEqual([]);
  });
});

it.each(['id', 'name'])('recognizes the pool by its %s, too', async (field) => {
  await using played = await PlayedLease.start();
  const pool = { id: 'pool-1', name: 'a-name', [field]: 'known-as' };
  const known = new BrowserPool('known-as', played.service.options);
  played.service.script('acquire', { status: 200, json: played.session({ pool }) }, { status: 204 });
  played.service.script('pool', record(1, 2));
  const { value } = await played.run(() => played.run(undefined, { acquireTimeout: 100 }, known));
  expect((value as { error: Error }).error.message).toContain('inside the lease of session session-1');
  await known.close();
});
