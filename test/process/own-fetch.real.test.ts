import { expect, it } from 'vitest';
import { PlayedLease } from '../support/played-lease.js';
import { variablesOf } from '../support/program.js';
import { start } from './support.js';

it('leaves the fetch of the program to Node', async () => {
  await using played = await PlayedLease.start();
  const program = start('own-fetch', [], variablesOf(played.service.options));
  await program.prints(/^hello$/m);
  expect(program.stderr).toBe('');
});
