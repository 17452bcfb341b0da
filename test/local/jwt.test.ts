import { afterEach, expect, it, vi } from 'vitest';
import { Lease } from '../../src/local/pool/lease.js';
import type { PooledChromium } from '../../src/local/pool/lease.js';
import { LeaseTokens } from '../../src/local/sockets/jwt.js';

const leases: Lease[] = [];
afterEach(() => leases.splice(0).forEach((lease) => lease.end()));

it('names its lease until it expires', async () => {
  const tokens = new LeaseTokens(60_000);
  const lease = newLease('s1');
  const jwt = await tokens.sign(lease, 'cdp');
  expect(await tokens.verify(jwt, 'cdp')).toEqual({ sessionId: 's1', leaseId: lease.id });
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
  expect(await tokens.verify(jwt, 'cdp')).toBeUndefined();
});

it('stays valid when the wall clock jumps', async () => {
  const tokens = new LeaseTokens(60_000);
  const jwt = await tokens.sign(newLease('s1'), 'cdp');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 24 * 3_600_000);
  expect(await tokens.verify(jwt, 'cdp')).toBeDefined();
});

it('is valid at one server only', async () => {
  const jwt = await new LeaseTokens().sign(newLease('s1'), 'cdp');
  expect(await new LeaseTokens().verify(jwt, 'cdp')).toBeUndefined();
});

it('for one protocol is refused for the other', async () => {
  const tokens = new LeaseTokens();
  const jwt = await tokens.sign(newLease('s1'), 'cdp');
  expect(await tokens.verify(jwt, 'bidi')).toBeUndefined();
});

function newLease(sessionId: string): Lease {
  const lease = new Lease({ sessionId } as PooledChromium, {}, 1e9, () => {});
  leases.push(lease);
  return lease;
}
