import { expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool } from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

it.each([
  ['inside a lease of the same pool', 'test', false, true],
  ['inside a lease of another pool', 'other', false, false],
  ['that outlives the lease in which it began', 'test', true, false],
])('a call %s ends at its timeout, and its error says when it can be waiting for itself', async (...row) => {
  const [, idOrName, outlives, isNested] = row;
  await using played = await PlayedLease.start();
  const grant = { status: 200, json: played.session({ name: 'crawler-7' }) };
  played.service.script('acquire', grant, { status: 204 });
  await using inner = new BrowserPool(idOrName, played.service.options);
  let nested: ReturnType<typeof played.run> | undefined;
  await played.run(async () => {
    // Longer than the end of the lease takes on a busy machine.
    nested = played.run(undefined, { acquireTimeout: outlives ? 3000 : 500 }, inner);
    if (!outlives) await nested;
  });
  const { error } = await nested!;
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  const sentence = 'inside the lease of session session-1 (crawler-7) of the same pool';
  expect((error as Error).message.includes(sentence)).toBe(isNested);
});
