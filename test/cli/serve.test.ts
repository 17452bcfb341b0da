import { expect, it } from 'vitest';
import { formatEvent } from '../../src/cli/serve.js';

const RECORDED = {
  type: 'recording-finished',
  pool: 'tests',
  sessionId: '0123456789ab',
  replayId: 'r1',
  reason: 'stopped',
  milliseconds: 12_340,
  bytes: 3 * 1024 * 1024,
} as const;
const CHAOS = { type: 'chaos', seed: 7, fault: 'delay', at: 'pool', nth: 3 } as const;

it.each([
  [RECORDED, 'recorded      01234567  tests  r1, 12.3 s, 3.0 MB'],
  [
    { ...RECORDED, reason: 'disk-full' },
    'recorded      01234567  tests  r1, 12.3 s, 3.0 MB, incomplete: the disk is full',
  ],
  [
    { ...RECORDED, reason: 'disk-limit' },
    'recorded      01234567  tests  r1, 12.3 s, 3.0 MB, incomplete: the recording reached its size limit',
  ],
  [
    { ...RECORDED, failure: 'it was not decoded', bytes: 0 },
    'recorded      01234567  tests  r1, no video: it was not decoded',
  ],
  [{ ...CHAOS, milliseconds: 50 }, 'chaos         delay at pool 3, 50 ms'],
  [{ ...CHAOS, fault: 'status', status: 503 }, 'chaos         status at pool 3, 503'],
] as const)('describes %j in one line', (event, line) => {
  expect(formatEvent(event, (_colour, text) => text)).toBe(line);
});
