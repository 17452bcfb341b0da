import { expect, vi } from 'vitest';
import {
  BrowserPool,
  InvalidOptionError,
  withPooledBrowser,
  type BrowserPoolOptions,
} from '../../src/index.js';
import { plainConnector } from '../support/plain-connector.js';
import { reply, session, type FakeService } from '../support/fake-service.js';
import * as played from '../support/played-browser.js';
import { expectNoSecrets } from '../support/collected.js';
import { hang, it, rejection } from './support.js';
import { useFakeClock } from '../support/fake-clock.js';

/** A pool with a token function. */
function poolWith({ baseUrl }: FakeService, token: unknown): BrowserPool {
  return new BrowserPool('pool', { baseUrl, token: token as BrowserPoolOptions['token'] });
}

/** A token function that counts its calls. */
function counting(): { token: () => string; asked: () => number } {
  let count = 0;
  return { token: () => `canary-rotating-${++count}`, asked: () => count };
}

const UNAUTHORIZED = { status: 401, json: { code: 'unauthorized', message: 'no' } };

it('calls a token function before each request, and awaits its promise', async ({ service }) => {
  const { token, asked } = counting();
  await using pool = poolWith(service, async () => token());
  expect(asked()).toBe(0);
  await pool.acquire();
  await pool.flush();
  await pool.release('session-1');
  expect(service.requests.map(({ headers }) => headers.authorization)).toStrictEqual([
    'Bearer canary-rotating-1',
    'Bearer canary-rotating-2',
    'Bearer canary-rotating-3',
  ]);
});

it('hides each token that a token function has returned', async ({ service }) => {
  const tokens = ['first-of-two-rotating', 'second-of-two-rotating'];
  let calls = 0;
  await using pool = poolWith(service, () => tokens[calls++]);
  await pool.flush();
  service.script('flush', { status: 500, text: `sent: ${tokens.join(', ')}` });
  const error = await rejection(pool.flush());
  expect(error.message).toContain('sent: [redacted], [redacted]');
});

it('calls a token function again after a 401, and continues with the new token', async ({ service }) => {
  const { token, asked } = counting();
  await using pool = poolWith(service, token);
  service.script('acquire', (response, { headers }) => {
    const isKnown = headers.authorization === 'Bearer canary-rotating-2';
    reply(response, isKnown ? { status: 200, json: session() } : UNAUTHORIZED);
  });
  expect((await pool.acquire())?.session_id).toBe('session-1');
  expect(asked()).toBe(2);
  expect(service.requests).toHaveLength(2);
  expect(service.requests[1]?.body).toStrictEqual(service.requests[0]?.body);
});

it('calls a token function again after a 401 exactly once', async ({ service }) => {
  const { token, asked } = counting();
  await using pool = poolWith(service, token);
  service.script('flush', UNAUTHORIZED);
  const error = await rejection(pool.flush());
  expect(error).toMatchObject({ name: 'PoolServiceError', status: 401, code: 'unauthorized' });
  expect(asked()).toBe(2);
  expect(service.requests).toHaveLength(2);
});

it.for<[string, () => unknown]>([
  ['undefined', () => undefined],
  ['an empty string', () => ''],
  ['a line break', () => 'canary-\r\nx-evil: 1'],
  ['spaces', () => 'canary- token'],
  ['an object', () => ({ token: 'canary-token' })],
  ['a promise of null', () => Promise.resolve(null)],
])(
  'rejects an invalid result of a token function, such as %s, before anything is sent',
  async ([, token], { service }) => {
    await using pool = poolWith(service, token);
    const error = await rejection<InvalidOptionError>(pool.flush());
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.option).toBe('token');
    expect(service.requests).toHaveLength(0);
    expectNoSecrets(error);
  },
);

it('rethrows an error of a token function unchanged', async ({ service }) => {
  const own = new Error('the vault is closed');
  await using pool = poolWith(service, () => Promise.reject(own));
  expect(await rejection(pool.acquire())).toBe(own);
  expect(await rejection(pool.flush())).toBe(own);
  expect(service.requests).toHaveLength(0);
});

it.for<[thrown: unknown, message: string]>([
  ['a text', "'a text' was thrown"],
  [undefined, 'undefined was thrown'],
])('turns %j, which a token function throws, into an error', async ([thrown, message], { service }) => {
  await using pool = poolWith(service, () => Promise.reject(thrown));
  const connector = plainConnector;
  for (const call of [pool.flush(), pool.acquire(), withPooledBrowser(pool, () => {}, { connector })])
    expect(await rejection(call)).toMatchObject({ name: 'Error', message });
  expect(service.requests).toHaveLength(0);
});

it('includes a slow token function in the timeout of a release', async ({ service }) => {
  await using pool = poolWith(service, () => new Promise<string>(() => {}));
  const error = await rejection(pool.release('session-1', { timeout: 200 }));
  expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', sessionId: 'session-1' });
  expect(service.requests).toEqual([]);
});

it('rejects on abort during a slow token function, and sends nothing', async ({ service }) => {
  let give!: (token: string) => void;
  const pool = poolWith(service, () => new Promise<string>((resolve) => (give = resolve)));
  const reason = new Error('enough');
  const flush = rejection(pool.flush({ signal: AbortSignal.abort(reason) }));
  const controller = new AbortController();
  const acquire = rejection(pool.acquire({}, { signal: controller.signal }));
  controller.abort(reason);
  expect(await acquire).toBe(reason);
  expect(await flush).toBe(reason);
  give('canary-late-token');
  await pool.close();
  expect(service.requests).toHaveLength(0);
});

it('applies one timeout to both requests around a 401', async ({ service }) => {
  await using pool = poolWith(service, counting().token);
  let refuse!: () => void;
  service.script('release', (response) => void (refuse = () => reply(response, { status: 401 })), hang);
  // The first request starts the timer that all connections share: it must be a real one.
  await pool.flush();
  useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  let error: unknown;
  const releasing = rejection(pool.release('session-1', { timeout: 2000 })).then((late) => (error = late));
  await played.until(() => service.released.length === 1);
  vi.advanceTimersByTime(1800);
  refuse();
  await played.until(() => service.released.length === 2);
  vi.advanceTimersByTime(199);
  await played.settle();
  expect(error).toBeUndefined();
  vi.advanceTimersByTime(1);
  await releasing;
  expect(error).toMatchObject({ code: 'ERR_POOL_NO_RESPONSE', sessionId: 'session-1' });
  expect(service.released).toHaveLength(2);
});
