import { expect, vi } from 'vitest';
import { BrowserPool, InvalidOptionError } from '../../src/index.js';
import { TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { it, rejection } from '../pool/support.js';

/** Returns the error of a call that sends nothing: a request would fail. A method rejects, and never throws. */
async function refusal(call: (pool: BrowserPool) => Promise<unknown>): Promise<InvalidOptionError> {
  await using pool = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  const error = await rejection<InvalidOptionError>(call(pool));
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error).toMatchObject({ name: 'InvalidOptionError', code: 'ERR_INVALID_OPTION' });
  expectNoSecrets(error);
  return error;
}

/** Returns the error of a pool that can't be created. */
function thrown(options: unknown, { pool }: { pool: unknown } = { pool: 'pool' }): InvalidOptionError {
  let created: unknown;
  try {
    created = new BrowserPool(pool as string, options as object);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    expectNoSecrets(error);
    return error as InvalidOptionError;
  }
  throw new Error(`Nothing was thrown: ${String(created)}`);
}

it.for<[option: string, message: RegExp, values: unknown[]]>([
  [
    'name',
    /1 to 255 .*letter.*digit.*dot.*underscore.*hyphen/,
    ['', 'a b', 'é', 'a/b', 'a\n', 'x'.repeat(256), null, 5, {}],
  ],
  [
    'tags',
    /object whose values are strings/,
    [null, 'a', ['a'], { a: 1 }, { a: null }, { a: undefined }, { a: { b: 'c' } }],
  ],
  [
    'acquire_timeout_seconds',
    /whole number, 0 or more, not /,
    [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '5', null, 2 ** 53, Object.create(null)],
  ],
  [
    'start_url',
    /absolute URL/,
    ['', 'example.com', '/path', 5, null, 'http://', 'javascript:1', 'file:///etc/passwd'],
  ],
])(
  'rejects an acquire request with an invalid %s, and says what is allowed',
  async ([option, message, values]) => {
    for (const value of values) {
      const error = await refusal((pool) => pool.acquire({ [option]: value }));
      expect(error.option).toBe(option);
      expect(error.message).toMatch(message);
    }
  },
);

it.for(['a', 'A-Z.0_9', 'x'.repeat(255)])('sends the lease name %s', async (name, { service, pool }) => {
  await pool.acquire({ name });
  expect(service.requests[0]?.body).toMatchObject({ name });
});

it('sends 50 tags, and rejects 51', async ({ service, pool }) => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, 'v']));
  await pool.acquire({ tags: tags(50) });
  // The tag of the library would be one too many.
  expect(service.requests[0]?.body).toStrictEqual({ tags: tags(50) });
  const error = await rejection<InvalidOptionError>(pool.acquire({ tags: tags(51) }));
  expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'tags' });
  expect(error.message).toMatch(/at most 50 .*51/);
  expect(service.requests).toHaveLength(1);
});

it('rejects unknown fields of an acquire request, and suggests a similar one', async () => {
  const error = await refusal((pool) => pool.acquire({ startUrl: 'https://example.com' } as object));
  expect(error.option).toBe('startUrl');
  expect(error.message).toMatch(/acquire has no option startUrl\. Did you mean start_url\?/);
  for (const request of [null, 'scrapers', [], 5]) await refusal((pool) => pool.acquire(request as object));
});

const SEGMENTS: unknown[] = [
  ['', ' ', '\t', '.', '..', '%2e%2e', '%2E%2e', 'a/b', 'a\\b', '../flush', 'a%2fb', 'x'.repeat(256)],
  ['a\r\nHost: evil', 'a\u0000b', 'a\u007f', '\ud800', 'a\ud800b', undefined, null, 5, {}],
].flat();

it.for(SEGMENTS)('rejects %j as a pool', (value) => {
  const error = thrown({ baseUrl: UNREACHABLE, token: TOKEN }, { pool: value });
  expect(error.option).toBe('pool');
  expect(error.message).toMatch(/^pool must /);
});

it.for<[string, (pool: BrowserPool, id: string) => Promise<unknown>]>([
  ['sessionId', (pool, id) => pool.release(id)],
  ['sessionId', (pool, id) => pool.replays(id)],
  ['sessionId', (pool, id) => pool.startReplay(id)],
  ['sessionId', (pool, id) => pool.stopReplay(id, 'r')],
  ['replayId', (pool, id) => pool.stopReplay('s', id)],
  ['replayId', (pool, id) => pool.deleteReplay('s', id)],
])('rejects a %s that can not be a part of a path: %s', async ([option, call]) => {
  for (const id of ['..', undefined as never]) {
    const error = await refusal((pool) => call(pool, id));
    expect(error.option).toBe(option);
    expect(error.message).toMatch(new RegExp(`^${option} must `));
  }
});

it.for<[unknown, RegExp]>([
  ['http://pool.example.com', /https:\/\//],
  ['ftp://pool.example.com', /https:\/\//],
  ['file:///etc/passwd', /https:\/\//],
  ['wss://pool.example.com', /https:\/\//],
  ['https://user:canary-password@pool.example.com', /user name or a password.*token/],
  ['https://canary-user@pool.example.com', /user name or a password.*token/],
  ['https://pool.example.com?token=canary-query', /query or a fragment/],
  ['https://pool.example.com/#canary-hash', /query or a fragment/],
  ['user:canary-password@pool', /./],
  ['pool?token=canary-query', /./],
  ['/v1', /absolute URL/],
  ['https://', /absolute URL/],
  [5, /absolute URL/],
  [new URL('https://pool.example.com'), /absolute URL|https/],
  // The end of the message suggests a correction.
  ['Local', /must be local, or an absolute URL.*not "Local"\. Did you mean local\?$/],
  ['localhost:4411', /absolute URL.*not "localhost:4411"\. Did you mean http:\/\/localhost:4411\?$/],
  ['127.0.0.1:4411/v1', /not "127\.0\.0\.1:4411\/v1"\. Did you mean http:\/\/127\.0\.0\.1:4411\/v1\?$/],
  [
    'pool.example.com',
    /absolute URL.*not "pool\.example\.com"\. Did you mean https:\/\/pool\.example\.com\?$/,
  ],
  ['http://pool.example.com', /Did you mean https:\/\/pool\.example\.com\?$/],
  ['not a url', /not "not a url"\.$/],
  ['undefined', /not "undefined"\.$/],
])('rejects the base URL %s, and suggests a correction', ([baseUrl, message]) => {
  const error = thrown({ baseUrl, token: TOKEN });
  expect(error.option).toBe('baseUrl');
  expect(error.message).toMatch(message);
});

it.for([
  'https://pool.example.com/v1',
  'http://localhost:1',
  'http://127.0.0.1',
  'http://127.1.2.3:80',
  'http://[::1]:8080',
])('accepts the base URL %s', async (baseUrl) => {
  await using pool = new BrowserPool('pool', { baseUrl, token: TOKEN });
  expect(pool.baseUrl).toBe(new URL(baseUrl).href);
});

it.for([undefined, ''])('explains what to do if address or token are %j everywhere', (value) => {
  vi.stubEnv('BROWSER_POOL_BASE_URL', value);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', value);
  const noUrl = thrown({ token: TOKEN });
  expect(noUrl.option).toBe('baseUrl');
  expect(noUrl.message).toMatch(/BROWSER_POOL_BASE_URL/);
  const noToken = thrown({ baseUrl: UNREACHABLE });
  expect(noToken.option).toBe('token');
  expect(noToken.message).toMatch(/option token.*BROWSER_POOL_ACCESS_TOKEN/);
});

it.for(['', 'canary- two words', 'canary-\r\nx: y', 'canary-é', 5, null, {}])(
  'rejects the token %j without showing it',
  (token) => {
    expect(thrown({ baseUrl: UNREACHABLE, token }).option).toBe('token');
  },
);

it('rejects an unknown option of a pool, and options that are no object', () => {
  const error = thrown({ baseURL: UNREACHABLE, token: TOKEN });
  expect(error.option).toBe('baseURL');
  expect(error.message).toMatch(/BrowserPool has no option baseURL\. Did you mean baseUrl\?/);
  vi.stubEnv('BROWSER_POOL_BASE_URL', UNREACHABLE);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', TOKEN);
  for (const options of [null, 5, 'https://pool.example.com', []]) thrown(options);
});

it.for<[string, (pool: BrowserPool, options: object) => Promise<unknown>]>([
  ['acquire', (pool, options) => pool.acquire({}, options)],
  ['release', (pool, options) => pool.release('session-1', options)],
  ['flush', (pool, options) => pool.flush(options)],
  ['replays', (pool, options) => pool.replays('session-1', options)],
  ['startReplay', (pool, options) => pool.startReplay('session-1', {}, options)],
  ['describe', (pool, options) => pool.describe(options)],
])('rejects an unknown option of %s instead of ignoring a misspelled one', async ([, call]) => {
  const error = await refusal((pool) => call(pool, { sginal: undefined, resue: false }));
  expect(error.option).toBe('sginal');
  expect(error.message).toMatch(/signal/);
});

it('rejects invalid values of options before anything is sent', async () => {
  for (const reuse of ['yes', 0, null])
    expect((await refusal((pool) => pool.release('s', { reuse } as object))).option).toBe('reuse');
  for (const timeout of [-1, Number.NaN, '5', null])
    expect((await refusal((pool) => pool.release('s', { timeout } as object))).option).toBe('timeout');
  for (const request of [{ frameRate: 0 }, { frameRate: 1.5 }, { maxSeconds: -1 }, { framerate: 5 }])
    expect((await refusal((pool) => pool.startReplay('s', request as object))).option).toBe(
      Object.keys(request)[0],
    );
});
