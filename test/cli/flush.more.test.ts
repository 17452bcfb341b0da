import { expect, it } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import { hasTerminals, startAtTerminal } from './support.js';

it.runIf(hasTerminals).each([
  ['y', 'y\n', { code: 0, flushes: 1 }],
  ['Ctrl-C', '\x03', { code: 130, flushes: 0 }],
])('flush asks at a terminal, and ends after %s', async (_key, typed, { code, flushes }) => {
  await using service = await FakeService.start();
  const flush = startAtTerminal(['flush', 'scrapers'], service.options);
  await flush.prints(/for all its users\? \[y\/N\] /);
  expect(service.requests).toEqual([]);
  flush.child.stdin!.write(typed);
  expect(await flush.ended).toMatchObject({ code });
  expect(service.of('flush')).toHaveLength(flushes);
});
