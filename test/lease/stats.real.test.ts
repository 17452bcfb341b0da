import { expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool } from '../../src/index.js';
import { attachBrowser, leaseBrowser, withPooledBrowser } from '../../src/playwright.js';
import { asJson } from '../service/support.js';
import { FakeService } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';

const used = useLocalPool();

it('a pool counts its calls, requests and leases', async () => {
  const { pool } = used;
  expect(pool.stats()).toMatchObject({ calls: 0, waiting: 0, waits: { count: 0, sum: 0, max: 0 } });

  // A slow cleanup must not change the counts.
  const options = { release: 'reuse' } as const;
  await withPooledBrowser(pool, () => {}, options);
  const failing = withPooledBrowser(pool, () => Promise.reject(new Error('mine')), options);
  await expect(failing).rejects.toThrow('mine');
  await withPooledBrowser(pool, () => {}, { release: 'destroy' });
  await using browser = await leaseBrowser(pool, options);
  expect(pool.stats().leases.active).toBe(1);
  const tooLate = withPooledBrowser(pool, () => {}, { acquireTimeout: 1500, pollTimeout: 1000 });
  expect(pool.stats()).toMatchObject({ calls: 5, waiting: 1 });
  await expect(tooLate).rejects.toThrow(AcquireTimeoutError);
  // The service could still lease the browser to the last request of that call.
  await expect.poll(() => used.local.stats().waiting).toBe(0);
  await browser.release();

  const stats = pool.stats();
  expect(stats).toMatchObject({
    calls: 5,
    waiting: 0,
    timeouts: 1,
    requests: { granted: 4, failed: 0, unknown: 0, orphaned: 0 },
    leases: { active: 0, reused: 3, destroyed: 1, left: 0, failed: 0 },
    waits: { count: 4 },
  });
  const { count, sum, max, bounds, counts } = stats.waits;
  expect(counts).toHaveLength(bounds.length + 1);
  expect(counts.reduce((total, waits) => total + waits)).toBe(count);
  expect(max).toBeLessThanOrEqual(sum);
  expect(structuredClone(stats)).toStrictEqual(stats);
  expect(asJson(stats)).toStrictEqual(stats);
});

it('a detached lease counts as left, and as active where it is attached', async () => {
  const { pool, local } = used;
  const before = pool.stats().leases.left;
  const detached = await (await leaseBrowser(pool)).detach();
  expect(pool.stats().leases).toMatchObject({ active: 0, left: before + 1 });
  await using elsewhere = new BrowserPool('test', { baseUrl: local.baseUrl, token: local.token });
  const browser = await attachBrowser(detached, { pool: elsewhere });
  expect(elsewhere.stats()).toMatchObject({ calls: 0, leases: { active: 1 } });
  await browser.release();
  expect(elsewhere.stats().leases).toMatchObject({ active: 0, destroyed: 1 });
});

it('requests are counted by their outcome, including those without a run', async () => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script(
    'acquire',
    { status: 204 },
    { status: 403, json: { code: 'forbidden', message: 'no' } },
    { status: 500, text: '' },
    { status: 200, json: { session_id: 'half-an-answer' } },
  );
  expect(await pool.acquire()).toBeNull();
  for (const error of [/forbidden|no/, /500/, /session/i])
    await expect(pool.acquire()).rejects.toThrow(error);
  const given = new Error('given up');
  await expect(pool.acquire({}, { signal: AbortSignal.abort(given) })).rejects.toBe(given);
  expect(pool.stats()).toMatchObject({
    calls: 0,
    requests: { granted: 0, empty: 1, failed: 2, unknown: 1, orphaned: 1 },
  });
  await pool.close();
  expect(service.released).toEqual(['half-an-answer']);
});
