import { expect, it } from 'vitest';
import { renewalDelay } from '../../src/service/held-sessions.js';

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
