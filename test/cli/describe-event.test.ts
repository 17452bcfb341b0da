import { expect, it } from 'vitest';
import { describeEvent } from '../../src/cli/serve/describe-event.js';
import type { LocalPoolEvent } from '../../src/local.js';

const RECORDED = {
  type: 'recording-finished',
  pool: 'tests',
  sessionId: '0123456789ab',
  replayId: 'r1',
  reason: 'stopped',
  milliseconds: 12_340,
  bytes: 3 * 1024 * 1024,
} as const;

it.each<[string, Partial<Extract<LocalPoolEvent, { type: 'recording-finished' }>>, string]>([
  ['of a recording that was stopped', {}, '12.3 s, 3.0 MB'],
  [
    'of one that a full disk cut short',
    { reason: 'disk-full' },
    '12.3 s, 3.0 MB, cut short: the disk is full',
  ],
  [
    'of one that its limit cut short',
    { reason: 'disk-limit' },
    '12.3 s, 3.0 MB, cut short: the limit of bytes was reached',
  ],
  ['of one that came to nothing', { failure: 'it was not decoded', bytes: 0 }, 'no film: it was not decoded'],
])('tells the end %s in one line', (_which, change, told) => {
  const line = describeEvent({ ...RECORDED, ...change }, (_colour, text) => text);
  expect(line).toBe(`recorded      01234567  tests  r1, ${told}`);
});
