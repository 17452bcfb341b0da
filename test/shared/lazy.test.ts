import { expect, it } from 'vitest';
import { lazy } from '../../src/shared/lazy.js';

it('loads at the first call, and only once', async () => {
  let loads = 0;
  const load = lazy(async () => ++loads);
  expect(loads).toBe(0);
  expect(await Promise.all([load(), load()])).toEqual([1, 1]);
  expect(await load()).toBe(1);
});

it('loads again after a failure', async () => {
  let loads = 0;
  const load = lazy(async () => {
    if (++loads === 1) throw new Error('not installed');
    return loads;
  });
  await expect(load()).rejects.toThrow('not installed');
  expect(await load()).toBe(2);
});
