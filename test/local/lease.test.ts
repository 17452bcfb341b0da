import { expect, it, onTestFinished, vi } from 'vitest';
import { send } from '../../src/local/http/answer.js';
import { ServedLease, type ServedBrowser } from '../../src/local/pool/served-lease.js';
import { LeaseTokens } from '../../src/local/sockets/jwt.js';
import { useFakeClock } from '../support/fake-clock.js';
import { Site } from '../support/site.js';

function newLease(timeout: number, onInactive = () => {}): ServedLease {
  const lease = new ServedLease({ sessionId: 's1' } as ServedBrowser, { no_udp: false }, timeout, onInactive);
  onTestFinished(() => lease.end());
  return lease;
}

it('expires without a connection, not before the timeout after the last one, and not after its end', () => {
  useFakeClock();
  const onInactive = vi.fn();
  const lease = newLease(1_000, onInactive);
  vi.advanceTimersByTime(999);
  const [first, second] = [lease.connect(() => {}), lease.connect(() => {})];
  first();
  vi.advanceTimersByTime(5_000);
  second();
  // A connection is removed once.
  first();
  vi.advanceTimersByTime(999);
  expect(onInactive).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onInactive).toHaveBeenCalledOnce();
  const cut = vi.fn();
  const other = newLease(1_000, onInactive);
  const disconnect = other.connect(cut);
  for (const lease of [other, newLease(1_000, onInactive)]) lease.end();
  expect(cut).toHaveBeenCalledOnce();
  disconnect();
  vi.advanceTimersByTime(5_000);
  expect(onInactive).toHaveBeenCalledOnce();
});

it('is undone if the socket is closed before the response is sent', async () => {
  const undelivered = vi.fn();
  await using site = await Site.open((request, response) => {
    request.socket.destroy();
    void send(response, { status: 200, body: {}, onUndelivered: undelivered });
  });
  await expect(fetch(site.url)).rejects.toThrow('fetch failed');
  await expect.poll(() => undelivered.mock.calls).toHaveLength(1);
});

it('has jwts that are valid until they expire, by a clock that does not jump with the wall clock', async () => {
  const lease = newLease(1e9);
  const tokens = new LeaseTokens(60_000);
  const jwt = await tokens.sign(lease, 'cdp');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 24 * 3_600_000);
  expect(await tokens.isValid(jwt, lease, 'cdp')).toBe(true);
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
  expect(await tokens.isValid(jwt, lease, 'cdp')).toBe(false);
});
