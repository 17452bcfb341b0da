import { expect, it } from 'vitest';
import { BrowserPool, attachBrowser } from '../../src/index.js';
import { asJson } from '../service/support.js';
import { PlayedLease } from '../support/played-lease.js';

it('a pool counts its calls, its requests by their outcome, and its leases', async () => {
  await using played = await PlayedLease.start();
  const { pool, service, connector } = played;
  expect(pool.stats()).toMatchObject({ calls: 0, waiting: 0, waits: { count: 0, sum: 0, max: 0 } });
  await played.run();
  await played.run(() => Promise.reject(new Error('mine')));
  await played.run(undefined, { release: 'destroy' });
  const lease = await played.lease();
  expect(pool.stats()).toMatchObject({ calls: 4, leases: { active: 1 } });
  const detached = await lease.detach();
  const elsewhere = new BrowserPool('test', service.options);
  const attached = await attachBrowser(detached, { pool: elsewhere, connector });
  expect(elsewhere.stats()).toMatchObject({ calls: 0, leases: { active: 1 } });
  await attached.release();
  expect(elsewhere.stats().leases).toMatchObject({ active: 0, destroyed: 1 });
  await elsewhere.close();

  service.script('acquire', { status: 204 });
  const late = played.run(undefined, { acquireTimeout: 50, retry: { minTimeout: 10_000 } });
  expect(pool.stats()).toMatchObject({ calls: 5, waiting: 1 });
  await late;
  // Also requests without a run are counted.
  service.script(
    'acquire',
    { status: 403 },
    { status: 500 },
    { status: 200, json: { session_id: 'broken' } },
  );
  for (const error of [/403/, /500/, /session/i]) await expect(pool.acquire()).rejects.toThrow(error);
  await expect(pool.acquire({}, { signal: AbortSignal.abort('left') })).rejects.toBe('left');

  const stats = pool.stats();
  expect(stats).toMatchObject({
    calls: 5,
    waiting: 0,
    timeouts: 1,
    requests: { granted: 4, empty: 1, failed: 2, unknown: 1, orphaned: 1 },
    leases: { active: 0, reused: 2, destroyed: 1, left: 1, failed: 0 },
    waits: { count: 4 },
  });
  const { count, sum, max, bounds, counts } = stats.waits;
  expect(counts).toHaveLength(bounds.length + 1);
  expect(counts.reduce((total, waits) => total + waits)).toBe(count);
  expect(max).toBeLessThanOrEqual(sum);
  expect(asJson(stats)).toStrictEqual(stats);
});
