import { expect, it } from 'vitest';
import { loadLibrary } from '../../src/shared/lazy.js';
import { MissingLibraryError } from '../../src/index.js';
import { rejection } from '../service/support.js';

it('returns the library', async () => {
  const library = {};
  expect(await loadLibrary('playwright-core', async () => library)).toBe(library);
});

it('names a missing library, with the error of the import as cause', async () => {
  const cause = new Error('Cannot find package');
  const error = await rejection(loadLibrary('playwright-core', () => Promise.reject(cause)));
  expect(error).toBeInstanceOf(MissingLibraryError);
  expect(error.message).toContain('npm install playwright-core');
  expect(error.cause).toMatchObject({ message: 'Cannot find package' });
});
