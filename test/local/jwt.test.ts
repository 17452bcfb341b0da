import { expect, it, onTestFinished, vi } from 'vitest';
import { Lease, type PooledChromium } from '../../src/local/pool/lease.js';
import { LeaseTokens } from '../../src/local/sockets/jwt.js';

it('accepts a jwt until it expires, by a clock that does not jump with the wall clock', async () => {
  const lease = new Lease({ sessionId: 's1' } as PooledChromium, {}, 1e9, () => {});
  onTestFinished(() => lease.end());
  const tokens = new LeaseTokens(60_000);
  const jwt = await tokens.sign(lease, 'cdp');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 24 * 3_600_000);
  expect(await tokens.verify(jwt, 'cdp')).toEqual({ sessionId: 's1', leaseId: lease.id });
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
  expect(await tokens.verify(jwt, 'cdp')).toBeUndefined();
});
