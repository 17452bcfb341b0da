import { expect, it } from 'vitest';
import { MissingLibraryError } from '../../src/index.js';
import { lazy, loadLibrary } from '../../src/shared/lazy.js';
import { rejection } from '../pool/support.js';

it('loads at the first call and only once, and again after a failure', async () => {
  let loads = 0;
  const load = lazy(async () => {
    if (++loads === 1) throw new Error('not installed');
    return loads;
  });
  expect(loads).toBe(0);
  await expect(load()).rejects.toThrow('not installed');
  expect(await Promise.all([load(), load()])).toEqual([2, 2]);
  expect(await load()).toBe(2);
});

it('returns a library, and names a missing one, with the error of the import as cause', async () => {
  const library = {};
  expect(await loadLibrary('playwright-core', async () => library)).toBe(library);
  const cause = new Error('Cannot find package');
  const error = await rejection(loadLibrary('playwright-core', () => Promise.reject(cause)));
  expect(error).toBeInstanceOf(MissingLibraryError);
  expect(error.message).toContain('npm install playwright-core');
  expect(error.cause).toMatchObject({ message: 'Cannot find package' });
});
