import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { resolvePool } from '../../src/lease/lease-call.js';

beforeEach(() => {
  vi.stubEnv('BROWSER_POOL_BASE_URL', 'https://pool.example.com/v1');
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', 'a-token');
});

afterEach(() => {
  vi.unstubAllEnvs();
});

it('returns a given pool itself', async () => {
  await using pool = new BrowserPool('mine');
  expect(resolvePool(pool)).toBe(pool);
});

it('returns the same pool for all calls with its name', () => {
  const pool = resolvePool('by-name');
  expect(pool).toMatchObject({ idOrName: 'by-name', baseUrl: 'https://pool.example.com/v1' });
  expect(resolvePool('by-name')).toBe(pool);
  expect(resolvePool('other')).not.toBe(pool);
});

it.each([
  ['BROWSER_POOL_BASE_URL', 'https://other.example.com/'],
  ['BROWSER_POOL_ACCESS_TOKEN', 'another-token'],
])('returns another pool after the environment has another %s', (name, value) => {
  const pool = resolvePool('by-name');
  vi.stubEnv(name, value);
  expect(resolvePool('by-name')).not.toBe(pool);
});

it.each([5, null, undefined, {}])('refuses %j', (pool) => {
  expect(() => resolvePool(pool as never)).toThrow(expect.objectContaining({ option: 'pool' }));
});
