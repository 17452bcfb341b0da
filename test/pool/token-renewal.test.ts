import { expect, it, onTestFinished, vi } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { heldSessionsOf, renewalDelay } from '../../src/pool/held-sessions.js';
import { clock } from '../../src/shared/clock.js';
import { settle } from '../support/played-browser.js';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`;
const at = (seconds: number) => NOW / 1000 + seconds;

it.each([
  ['none yet', undefined, 0],
  ['opaque', 'opaque-token', 60_000],
  ['with dots, but not a JWT', 'a.b.c', 60_000],
  ['a JWT of an hour', jwt({ iat: at(0), exp: at(3600) }), 60_000],
  ['a JWT of 40 s', jwt({ iat: at(0), exp: at(40) }), 20_000],
  ['a JWT of 40 s that was cached for 30 s', jwt({ iat: at(-30), exp: at(10) }), 5000],
  ['a JWT that is about to expire', jwt({ iat: at(-40), exp: at(0.1) }), 1000],
  ['a JWT without its beginning', jwt({ exp: at(40) }), 20_000],
  ['a JWT by a clock that is a day ahead', jwt({ iat: at(86_400), exp: at(86_440) }), 20_000],
  ['a JWT by a clock that is a day behind', jwt({ iat: at(-86_400), exp: at(-86_360) }), 20_000],
  ['a JWT without times', jwt({ sub: 'me' }), 60_000],
])('the token is renewed after half of the rest of its life, from 1 s to 60 s: %s', (_what, token, delay) => {
  expect(renewalDelay(token, NOW)).toBe(delay);
});

it('a token function that has returned no token yet, and always fails, is called with pauses', async () => {
  const timers = vi.spyOn(clock, 'setTimeout').mockImplementation(((call: () => void, delay: number) => {
    delays.push(delay);
    if (delay < 1000 && delays.length < 10) call();
    return { unref: () => undefined };
  }) as never);
  onTestFinished(() => timers.mockRestore());
  const delays: number[] = [];
  const token = vi.fn(() => Promise.reject(new Error('no token now')));
  const pool = new BrowserPool('pool', { baseUrl: 'http://127.0.0.1:1', token });
  // As `attachBrowser` does, which sends no request at first.
  const held = heldSessionsOf(pool).hold('session-1', undefined);
  await settle();
  expect(delays).toEqual([0, 1000]);
  held.forget();
});
