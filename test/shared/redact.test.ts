import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { withoutSecrets } from '../../src/shared/errors.js';
import {
  excerpt,
  hideOwnSecret,
  hideParameters,
  hideSecret,
  hideValuesIn,
  redact,
  shortenUrls,
} from '../../src/shared/redact.js';
import { PoolClosedError } from '../../src/shared/service-errors.js';
import { expectNoSecrets } from '../support/collected.js';
import { FakeService, JWT, TOKEN } from '../support/fake-service.js';

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
  ['a JSON field that contains escapes', String.raw`{"token":"hidden\"-and-\/-hidden-part"}`],
  ['a JSON string inside JSON', String.raw`{"body":"{\"token\":\"hidden-part\"}"}`],
  ['JSON in a URL', 'https://h/?q=%7B%22token%22%3A%22hidden-part%22%7D'],
  ['what inspect prints', "{ token: 'hidden-part', jwt: 'it is a hidden-part' }"],
  ['the user and password of a URL', 'wss://hidden-part:hidden-part@h/'],
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
  expect(shortenUrls(text, 1000)).toBe(shown);
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

it.each([
  ['white space', ' '],
  ['other secrets', 'https://a.test/?jwt=0123456789012345678901234567890123456789 '],
  ['colors', '\u001B[31m'],
])('shows no part of a secret that is cut before %s are removed', (_what, filler) => {
  const secret = `cut-secret-${'0123456789'.repeat(400)}`;
  hideOwnSecret(secret);
  // What is removed leaves space for the text behind it.
  for (let before = 8000; before <= 20_000; before += 397) {
    const text = filler.repeat(before / filler.length) + secret.repeat(3);
    expect(excerpt(text, 200)).not.toContain('cut-s');
    expect(shortenUrls(text, 200)).not.toContain('cut-s');
  }
});

it('finds a secret that a library has coloured', () => {
  hideSecret('a-coloured-secret');
  expect(excerpt('the \u001B[1ma-coloured\u001B[0m-secret', 100)).toBe('the [redacted]');
});

const PLAIN = 'echoed-Token_0123';
const each = (escape: (code: string) => string, all: RegExp = /./g) =>
  PLAIN.replaceAll(all, (sign) => escape(sign.charCodeAt(0).toString(16)));

it.each([
  ['hexadecimal digits', Buffer.from(PLAIN).toString('hex')],
  ['hexadecimal digits in capitals', Buffer.from(PLAIN).toString('hex').toUpperCase()],
  ['escapes of JSON', each((code) => `\\u00${code}`)],
  ['some escapes of JSON', each((code) => `\\u00${code.toUpperCase()}`, /[-_T]/g)],
  ['escapes of JSON inside JSON', each((code) => `\\\\u00${code}`)],
  ['escapes of JavaScript', each((code) => `\\x${code}`)],
  ['percent signs', each((code) => `%${code}`)],
  ['references of HTML', each((code) => `&#x${code};`)],
  ['decimal references of HTML', each((code) => `&#${Number.parseInt(code, 16)};`)],
])('redacts a secret that a service sends back in %s', (_how, encoded) => {
  hideOwnSecret(PLAIN);
  for (const text of [encoded, `%20\\u0041 ${encoded} b%20`]) {
    const shown = redact(text);
    expect(shown).toBe(text.replace(encoded, '[redacted]'));
    expect(excerpt(text, 100)).toBe(shown);
  }
});

it('keeps the newest secrets of services, and each secret of the user for ever', () => {
  const own = ['own-token-0123', 'own/token?of>"bytes"', 'short', 'user:pässwort'];
  own.forEach((secret) => hideOwnSecret(secret));
  for (let count = 0; count < 300; count++) hideOwnSecret(`rotating-token-${count}-`, 'rotated');
  hideSecret('old-secret-0123');
  for (let count = 0; count < 1000; count++) hideSecret(`service-secret-${count}-`);
  hideValuesIn(
    JSON.stringify(Array.from({ length: 400 }, (_, count) => ({ token: `value-of-service-${count}` }))),
  );
  // A service that sends a token of the user back can't displace it either.
  own.forEach(hideSecret);
  const forms = own.flatMap((text) => [
    text,
    encodeURIComponent(text),
    Buffer.from(text).toString('base64').replaceAll('=', ''),
    Buffer.from(text).toString('base64url'),
    JSON.stringify(text).slice(1, -1),
    JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  ]);
  for (const form of forms) expect(redact(`x ${form} y`)).toBe('x [redacted] y');
  for (const count of [0, 299]) expect(redact(`rotating-token-${count}-`)).toBe('[redacted]');
  expect(redact('old-secret-0123 service-secret-1-')).toBe('old-secret-0123 service-secret-1-');
});

it('hides a short secret of the user only as a whole word', () => {
  hideOwnSecret('s3cr');
  expect(redact('s3cr, Bearer s3cr "s3cr" and s3cret')).toBe(
    '[redacted], Bearer [redacted] "[redacted]" and s3cret',
  );
});

it('hides a long secret as a whole, and what may be one of many that begin alike', () => {
  const long = Array.from({ length: 900 }, (_, count) => `part-${count}`).join('+');
  hideOwnSecret(long);
  expect(redact(`x ${long} y`).replaceAll('[redacted]', '')).toBe('x  y');
  for (let count = 0; count < 200; count++) hideSecret(`alike-beginning-${count}-${'x'.repeat(2000)}`);
  const text = `alike-beginning-199-${'x'.repeat(2000)} `.repeat(200);
  expect(redact(text)).not.toContain('alike-b');
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

describe('an error of another library', () => {
  const URL_WITH_JWT = `wss://h.example.com/?jwt=${JWT}`;

  function clean(value: unknown): Error & { code?: string } {
    const copy = withoutSecrets(value) as Error;
    expectNoSecrets(copy);
    return copy;
  }

  it('keeps only name, message, code and stack, without secrets', () => {
    const error = Object.assign(new TypeError(`no route to ${URL_WITH_JWT}`), {
      code: 'ECONNRESET',
      url: URL_WITH_JWT,
      headers: { authorization: `Bearer ${TOKEN}` },
      [Symbol('socket')]: { url: URL_WITH_JWT },
    });
    const copy = clean(error);
    // The original is unchanged.
    expect(error.message).toContain(JWT);
    expect(copy).toBeInstanceOf(Error);
    expect(copy).toMatchObject({
      name: 'TypeError',
      message: 'no route to wss://h.example.com/?jwt=[redacted]',
      code: 'ECONNRESET',
    });
    expect(copy.stack).toContain('redact.test.ts');
    expect(copy).not.toHaveProperty('url');
    expect(Object.getOwnPropertySymbols(copy)).toStrictEqual([]);
  });

  it('copies the chain of causes at any depth, and ends for a circular one', () => {
    const chain = new Error(`top ${URL_WITH_JWT}`, {
      cause: new Error(`middle ${URL_WITH_JWT}`, { cause: `bottom ${URL_WITH_JWT}` }),
    });
    const copy = clean(chain);
    expect((copy.cause as Error).message).toBe('middle wss://h.example.com/?jwt=[redacted]');
    expect((copy.cause as Error).cause).toBe('bottom wss://h.example.com/?jwt=[redacted]');
    const error = new Error(URL_WITH_JWT);
    error.cause = new Error('other', { cause: error });
    let depth = 0;
    for (let link: unknown = clean(error); link instanceof Error; link = link.cause) depth++;
    expect(depth).toBeLessThan(20);
  });

  it('keeps an error of this library unchanged, anywhere in the chain', () => {
    const own = new PoolClosedError();
    expect(withoutSecrets(own)).toBe(own);
    expect(clean(new Error('top', { cause: own })).cause).toBe(own);
  });

  it('turns the error event of a real WebSocket into an error without its socket and URL', async () => {
    await using service = await FakeService.start();
    const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}/cdp?jwt=${JWT}`);
    const event = await new Promise<unknown>((resolve) => (socket.onerror = resolve));
    expect(inspect(event, { depth: 10, showHidden: true })).toContain(JWT);
    const copy = clean(event);
    expect(copy).toBeInstanceOf(Error);
    expect(copy.message).toMatch(/500/);
    expect(copy.cause).toBeInstanceOf(Error);
  });

  it('copies an event without a message, and a DOMException', () => {
    expect(clean({ type: 'error', target: { url: URL_WITH_JWT } })).toMatchObject({ message: 'no message' });
    const copy = clean(new DOMException(`aborted ${URL_WITH_JWT}`, 'AbortError'));
    expect(copy).toMatchObject({ name: 'AbortError', message: expect.stringContaining('aborted') });
  });

  it.each([
    ['an array', [URL_WITH_JWT, { deep: URL_WITH_JWT }]],
    ['a URL', new URL(URL_WITH_JWT)],
    ['a string', URL_WITH_JWT],
    ['an AggregateError', new AggregateError([new Error(URL_WITH_JWT)], URL_WITH_JWT)],
    ['an error with a name', Object.assign(new Error('m'), { name: URL_WITH_JWT, code: URL_WITH_JWT })],
  ])('shows no secret of a thrown value: %s', (_what, value) => {
    clean(value);
  });

  it('returns a thrown value that is no object unchanged', () => {
    for (const value of [undefined, null, 0, false]) expect(withoutSecrets(value)).toBe(value);
  });
});
