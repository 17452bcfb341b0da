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
  expect(await tokens.verify(jwt, ['cdp'])).toEqual({
    sessionId: 's1',
    leaseId: lease.id,
    audience: 'cdp',
  });
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
  expect(await tokens.verify(jwt, ['cdp'])).toBeUndefined();
});

it('stays valid when the wall clock jumps', async () => {
  const tokens = new LeaseTokens(60_000);
  const jwt = await tokens.sign(newLease('s1'), 'cdp');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 24 * 3_600_000);
  expect(await tokens.verify(jwt, ['cdp'])).toBeDefined();
});

it('is valid at one server only', async () => {
  const jwt = await new LeaseTokens().sign(newLease('s1'), 'cdp');
  expect(await new LeaseTokens().verify(jwt, ['cdp'])).toBeUndefined();
});

it('of a recording opens no WebSocket, and a jwt of a lease shows no recording', async () => {
  const tokens = new LeaseTokens();
  const [replay, cdp] = [await tokens.signReplay('s1', 'r1'), await tokens.sign(newLease('s1'), 'cdp')];
  expect(await tokens.verifyReplay(replay)).toEqual({ sessionId: 's1', replayId: 'r1' });
  expect(await tokens.verifyReplay(cdp)).toBeUndefined();
  expect(await tokens.verify(replay, ['cdp'])).toBeUndefined();
});

function newLease(sessionId: string): Lease {
  const lease = new Lease({ sessionId } as PooledChromium, {}, 1e9, () => {});
  leases.push(lease);
  return lease;
}
