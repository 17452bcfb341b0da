import { expect, it, vi } from 'vitest';
import { InvalidOptionError, isPooledBrowserError } from '../../src/shared/errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, TOKEN } from '../support/fake-service.js';
import { expectNoSecret, rejection } from './support.js';

const LONE_SURROGATE = '\ud800';
const BASE_URL = 'http://127.0.0.1:1';

/** Returns the error of a call that must not reach the service. */
async function refusal(call: (pool: BrowserPool) => Promise<unknown>): Promise<InvalidOptionError> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const error = await rejection<InvalidOptionError>(call(pool));
  expect(service.connections.made).toBe(0);
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error).toMatchObject({ name: 'InvalidOptionError', code: 'ERR_INVALID_OPTION' });
  expectNoSecret(error);
  return error;
}

function thrown(make: () => unknown): InvalidOptionError {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('Nothing was thrown');
}

it.each(['', 'a b', 'é', 'a/b', 'a\n', 'x'.repeat(256), null, 5, {}])(
  'rejects the lease name %j, and lists the allowed characters',
  async (name) => {
    const error = await refusal((pool) => pool.acquire({ name: name as string }));
    expect(error.option).toBe('name');
    expect(error.message).toMatch(/1 to 255 .*letter.*digit.*dot.*underscore.*hyphen/);
  },
);

it.each(['a', 'A-Z.0_9', 'x'.repeat(255)])('sends the lease name %s', async (name) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  await pool.acquire({ name });
  expect(service.requests[0]?.body).toStrictEqual({ name });
});

it.each([[null], ['a'], [['a']], [{ a: 1 }], [{ a: null }], [{ a: undefined }], [{ a: { b: 'c' } }]])(
  'rejects the tags %j with the reason',
  async (tags) => {
    const error = await refusal((pool) => pool.acquire({ tags: tags as unknown as Record<string, string> }));
    expect(error.option).toBe('tags');
    expect(error.message).toMatch(/object whose values are strings/);
  },
);

it('sends 50 tags, and rejects 51', async () => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, 'v']));
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  await pool.acquire({ tags: tags(50) });
  const error = await rejection<InvalidOptionError>(pool.acquire({ tags: tags(51) }));
  expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'tags' });
  expect(error.message).toMatch(/at most 50 .*51/);
  expect(service.requests).toHaveLength(1);
});

it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '5', null, 2 ** 53, Object.create(null)])(
  'rejects the wait %j: it must be whole seconds',
  async (wait) => {
    const error = await refusal((pool) => pool.acquire({ acquire_timeout_seconds: wait as number }));
    expect(error.option).toBe('acquire_timeout_seconds');
    expect(error.message).toMatch(/whole number, 0 or more, not /);
  },
);

it.each(['', 'example.com', '/path', 5, null, 'http://', 'javascript:1', 'file:///etc/passwd'])(
  'rejects the start_url %j',
  async (url) => {
    const error = await refusal((pool) => pool.acquire({ start_url: url as string }));
    expect(error.option).toBe('start_url');
    expect(error.message).toMatch(/absolute URL/);
  },
);

it('rejects unknown fields of an acquire request, and suggests a similar one', async () => {
  const error = await refusal((pool) => pool.acquire({ startUrl: 'https://example.com' } as object));
  expect(error.option).toBe('startUrl');
  expect(error.message).toMatch(/acquire has no option startUrl\. Did you mean start_url\?/);
});

it.each([[null], ['scrapers'], [[]], [5]])('rejects %j as an acquire request', async (request) => {
  await refusal((pool) => pool.acquire(request as object));
});

const SEGMENTS = [
  '',
  ' ',
  '\t',
  '.',
  '..',
  '%2e%2e',
  '%2E%2e',
  'a/b',
  'a\\b',
  '../flush',
  'a%2fb',
  'a\r\nHost: evil',
  'a\u0000b',
  'a\u007f',
  LONE_SURROGATE,
  `a${LONE_SURROGATE}b`,
  'x'.repeat(256),
  undefined,
  null,
  5,
  {},
];

it.each(SEGMENTS)('rejects the pool %j', (idOrName) => {
  const error = thrown(() => new BrowserPool(idOrName as string, { baseUrl: BASE_URL, token: TOKEN }));
  expect(error.option).toBe('pool');
  expect(error.message).toMatch(/^pool must /);
});

it.each(SEGMENTS)('rejects the session id %j for a release and for replays', async (id) => {
  const released = await refusal((pool) => pool.release(id as string));
  const listed = await refusal((pool) => pool.replays(id as string));
  expect(released).toMatchObject({ option: 'sessionId', message: listed.message });
  expect(listed.message).toMatch(/^sessionId must /);
});

it.each([
  ['http://pool.example.com', /https:\/\//],
  ['http://127.0.0.1.example.com', /https:\/\//],
  ['http://localhost.example.com', /https:\/\//],
  ['http://10.0.0.1', /https:\/\//],
  ['http://0.0.0.0', /https:\/\//],
  ['ftp://pool.example.com', /https:\/\//],
  ['file:///etc/passwd', /https:\/\//],
  ['wss://pool.example.com', /https:\/\//],
  ['https://user:canary-password@pool.example.com', /user name or a password.*token/],
  ['https://canary-user@pool.example.com', /user name or a password.*token/],
  ['https://pool.example.com?token=canary-query', /query or a fragment/],
  ['https://pool.example.com/#canary-hash', /query or a fragment/],
  ['pool.example.com', /absolute URL/],
  ['/v1', /absolute URL/],
  ['https://', /absolute URL/],
  [5, /absolute URL/],
  [new URL('https://pool.example.com'), /absolute URL|https/],
])('rejects the base URL %s', (baseUrl, message) => {
  const error = thrown(() => new BrowserPool('pool', { baseUrl: baseUrl as string, token: TOKEN }));
  expect(error.option).toBe('baseUrl');
  expect(error.message).toMatch(message);
  expectNoSecret(error);
});

it.each([
  ['localhost:4411', 'not "localhost:4411". Did you mean http://localhost:4411?'],
  ['127.0.0.1:4411/v1', 'not "127.0.0.1:4411/v1". Did you mean http://127.0.0.1:4411/v1?'],
  ['pool.example.com', 'not "pool.example.com". Did you mean https://pool.example.com?'],
  ['http://pool.example.com', 'Did you mean https://pool.example.com?'],
  ['not a url', 'not "not a url".'],
  ['undefined', 'not "undefined".'],
])('suggests a correction of the base URL %s', (baseUrl, message) => {
  const error = thrown(() => new BrowserPool('pool', { baseUrl, token: TOKEN }));
  expect(error.message.endsWith(message)).toBe(true);
});

it.each(['user:canary-password@pool', 'pool?token=canary-query'])('does not show %s', (baseUrl) => {
  expectNoSecret(thrown(() => new BrowserPool('pool', { baseUrl, token: TOKEN })));
});

it.each([
  'https://pool.example.com/v1',
  'http://localhost:1',
  'http://127.0.0.1',
  'http://127.1.2.3:80',
  'http://[::1]:8080',
])('accepts the base URL %s', async (baseUrl) => {
  const pool = new BrowserPool('pool', { baseUrl, token: TOKEN });
  expect(pool.baseUrl).toBe(new URL(baseUrl).href);
  await pool.close();
});

it('reads the address and the token from the environment when a pool is created', async () => {
  await using service = await FakeService.start();
  vi.stubEnv('BROWSER_POOL_BASE_URL', service.baseUrl);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', 'from-the-environment');
  await using pool = new BrowserPool('pool');
  await pool.flush();
  expect(service.requests[0]?.headers.authorization).toBe('Bearer from-the-environment');
});

it('prefers its options to the environment', async () => {
  await using service = await FakeService.start();
  vi.stubEnv('BROWSER_POOL_BASE_URL', 'https://elsewhere.example.com');
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', 'from-the-environment');
  await using pool = new BrowserPool('pool', service.options);
  await pool.flush();
  expect(service.requests[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
});

it.each([undefined, ''])('explains what to do if the address is %j everywhere', (value) => {
  vi.stubEnv('BROWSER_POOL_BASE_URL', value);
  const error = thrown(() => new BrowserPool('pool', { token: TOKEN }));
  expect(error.option).toBe('baseUrl');
  expect(error.message).toMatch(/BROWSER_POOL_BASE_URL/);
});

it.each([undefined, ''])('explains what to do if the token is %j everywhere', (value) => {
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', value);
  const error = thrown(() => new BrowserPool('pool', { baseUrl: BASE_URL }));
  expect(error.option).toBe('token');
  expect(error.message).toMatch(/option token.*BROWSER_POOL_ACCESS_TOKEN/);
});

it.each(['', 'canary- two words', 'canary-\r\nx: y', 'canary-é', 5, null, {}])(
  'rejects the token %j without showing it',
  (token) => {
    const error = thrown(() => new BrowserPool('pool', { baseUrl: BASE_URL, token: token as string }));
    expect(error.option).toBe('token');
    expectNoSecret(error);
  },
);

it('rejects an unknown option of a pool, and suggests a similar one', () => {
  const error = thrown(() => new BrowserPool('pool', { baseURL: BASE_URL, token: TOKEN } as object));
  expect(error.option).toBe('baseURL');
  expect(error.message).toMatch(/BrowserPool has no option baseURL\. Did you mean baseUrl\?/);
});

it.each([[null], [5], ['https://pool.example.com'], [[]]])('rejects %j as options of a pool', (options) => {
  vi.stubEnv('BROWSER_POOL_BASE_URL', BASE_URL);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', TOKEN);
  thrown(() => new BrowserPool('pool', options as object));
});

it.each<[string, (pool: BrowserPool, options: object) => Promise<unknown>]>([
  ['acquire', (pool, options) => pool.acquire({}, options)],
  ['release', (pool, options) => pool.release('session-1', options)],
  ['flush', (pool, options) => pool.flush(options)],
  ['replays', (pool, options) => pool.replays('session-1', options)],
  ['describe', (pool, options) => pool.describe(options)],
])('rejects an unknown option of %s instead of ignoring a misspelled one', async (_name, call) => {
  const error = await refusal((pool) => call(pool, { sginal: undefined, resue: false }));
  expect(error.option).toBe('sginal');
  expect(error.message).toMatch(/signal/);
});

it.each(['yes', 0, null])('rejects a release with reuse %j: it must be true or false', async (reuse) => {
  const error = await refusal((pool) => pool.release('session-1', { reuse: reuse as unknown as boolean }));
  expect(error.option).toBe('reuse');
});

it.each([-1, Number.NaN, '5', null])('rejects a release with the timeout %j', async (timeout) => {
  const error = await refusal((pool) => pool.release('session-1', { timeout: timeout as number }));
  expect(error.option).toBe('timeout');
});

it('rejects, and never throws, from a method that returns a promise', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const calls = [pool.acquire({ name: '' }), pool.release(''), pool.replays('')];
  const results = await Promise.allSettled(calls);
  for (const result of results) {
    expect(result.status === 'rejected' && isPooledBrowserError(result.reason)).toBe(true);
  }
});
