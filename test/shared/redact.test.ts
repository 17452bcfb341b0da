import { expect, it } from 'vitest';
import { excerpt, hideParameters, hideSecret, redact, redactUrls } from '../../src/shared/redact.js';

// As a pool does for its service.
hideParameters(['jwt', 'signing_key']);

it.each([
  ['wss://h.example.com/cdp?jwt=abc.def-1&x=2', 'wss://h.example.com/cdp?jwt=[redacted]&x=2'],
  ['https://h.example.com/?replay_id=1&jwt=abc', 'https://h.example.com/?replay_id=1&jwt=[redacted]'],
  ['?access_token=abc&token=def', '?access_token=[redacted]&token=[redacted]'],
  ['JWT=abc', 'JWT=[redacted]'],
  ['?signing_key=abc&other_signing_key2=def', '?signing_key=[redacted]&other_signing_key2=def'],
  ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
  ['authorization: bearer abc', 'authorization: bearer [redacted]'],
  ['{"u":"wss://h/?jwt=abc"}', '{"u":"wss://h/?jwt=[redacted]"}'],
  ['<a href="?jwt=abc">', '<a href="?jwt=[redacted]">'],
  ['the jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is', 'the jwt [redacted] is'],
])('redacts the secrets in %s', (text, expected) => {
  expect(redact(text)).toBe(expected);
});

it.each([
  ['escapes of JSON', String.raw`https://h/?a=1\u0026jwt=hidden-part`],
  ['escapes of HTML', 'https://h/?a=1&amp;jwt=hidden-part'],
  ['escapes of a URL', 'https://login/?next=https%3A%2F%2Fh%2F%3Fjwt%3Dhidden-part'],
  ['a JSON field', '{"jwt": "hidden-part"}'],
  ['a JSON field of a token', '{"access_token":"hidden-part"}'],
  ['a jwt that was cut', '/session/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0'],
])('recognizes a secret in %s', (_what, text) => {
  expect(redact(text)).not.toMatch(/hidden-part|eyJzdWIi/);
});

it.each(['the token is missing', 'a jwt parameter', 'eyJ', 'bearers of news', 'token: none', ''])(
  'leaves %j alone',
  (text) => {
    expect(redact(text)).toBe(text);
  },
);

it.each([
  ['https://shop.test/a?code=my-code&n=1#top', 'https://shop.test/a?code=[redacted]&n=[redacted]#top'],
  ['https://shop.test/#/cart?id=7', 'https://shop.test/#/cart?id=[redacted]'],
  ['https://shop.test/#id_token=abc&state=x', 'https://shop.test/#id_token=[redacted]&state=[redacted]'],
  ['https://shop.test/reset?3f9a8b', 'https://shop.test/reset?[redacted]'],
  ['at f (https://shop.test/a.js?v=3:1:2)', 'at f (https://shop.test/a.js?v=[redacted])'],
  ['GET /api?key=abc 404', 'GET /api?key=[redacted] 404'],
  ['https://user:password@shop.test/', 'https://[redacted]@shop.test/'],
  ['Is 1 = 1? Yes, a=b & c=d', 'Is 1 = 1? Yes, a=b & c=d'],
])('hides the values in the URLs of %j', (text, shown) => {
  expect(redactUrls(text)).toBe(shown);
});

it.each([
  ['anywhere', ['my-own-secret-1'], 'x my-own-secret-1 y(my-own-secret-1)', 'x [redacted] y([redacted])'],
  ['as text, not as a pattern', ['a+b$&(secret)*'], '1 a+b$&(secret)* 2', '1 [redacted] 2'],
  [
    'completely, beside its beginning',
    ['nested-secret', 'nested-secret-and-more'],
    'nested-secret-and-more',
    '[redacted]',
  ],
  ['unless it is a short, ordinary word', ['page'], 'a page', 'a page'],
  [
    'beside another without a gap',
    ['first-secret', 'second-secret'],
    'second-secretfirst-secret',
    '[redacted][redacted]',
  ],
  [
    'beside one that begins alike',
    ['alike-secret-1', 'alike-secret-22'],
    'alike-secret-22alike-secret-1',
    '[redacted][redacted]',
  ],
  [
    'of another alphabet',
    ['pässwörtchen', '密码密码密码密码密码'],
    '密码密码密码密码密码pässwörtchen!',
    '[redacted][redacted]!',
  ],
])('redacts a hidden value %s', (_how, secrets, text, shown) => {
  expect(redact(text)).toBe(text);
  secrets.forEach(hideSecret);
  expect(redact(text)).toBe(shown);
});

it('shows no part of a secret at the end of an excerpt', () => {
  hideSecret('a-secret-at-the-end');
  for (let before = 0; before <= 60; before++) {
    const text = `${'x'.repeat(before)} a-secret-at-the-end of a page`;
    expect(excerpt(text, 50)).not.toContain('a-s');
  }
});

it('drops the oldest of many secrets, but none that was used again', () => {
  const used = ['secret-in-use', Buffer.from('old-secret-0123').toString('base64')];
  for (const secret of ['old-secret-0123', ...used]) hideSecret(secret);
  for (let count = 0; count < 998; count++) {
    hideSecret(`rotating-secret-${count}-`);
    for (const secret of used) hideSecret(secret);
  }
  expect(redact(`${used.join(' ')} rotating-secret-997-`)).toBe('[redacted] [redacted] [redacted]');
  expect(redact('old-secret-0123')).toBe('old-secret-0123');
});

it.each(['', 'a', 'ab', 'abc'])('redacts a secret in the base64 of a text after %j', (before) => {
  const secret = 'token?of>bytes-0123456789';
  hideSecret(secret);
  for (const encoding of ['base64', 'base64url'] as const) {
    const text = Buffer.from(`${before}${secret}:more`).toString(encoding);
    const shown = redact(`Basic ${text}`);
    expect(shown).toContain('[redacted]');
    // At most the characters that the secret shares with its neighbours are left.
    expect(shown.replace('[redacted]', '').length).toBeLessThan('Basic '.length + 18);
  }
});
