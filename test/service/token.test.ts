import { expect, it, onTestFinished, vi } from 'vitest';
import { InvalidOptionError } from '../../src/shared/errors.js';
import { PoolServiceError } from '../../src/shared/service-errors.js';
import { BrowserPool, type BrowserPoolOptions } from '../../src/index.js';
import { FakeService, reply, session, type Answer } from '../support/fake-service.js';
import { settle, until } from '../support/played-browser.js';
import { expectNoSecret, hang, rejection } from './support.js';

/** Answers 401 unless the token is this one. */
function only(token: string, granted: Exclude<Answer, (...args: never[]) => unknown>): Answer {
  return (response, { headers }) => {
    const known = headers.authorization === `Bearer ${token}`;
    reply(response, known ? granted : { status: 401, json: { code: 'unauthorized', message: 'no' } });
  };
}

/** A token function that counts its calls. */
function counting(prefix: string): { token: () => string; asked: () => number } {
  let count = 0;
  return { token: () => `${prefix}${++count}`, asked: () => count };
}

it('calls a token function before each request', async () => {
  await using service = await FakeService.start();
  const { token, asked } = counting('canary-rotating-');
  await using pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
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

it('awaits a token function that returns a promise', async () => {
  await using service = await FakeService.start();
  const token = () => Promise.resolve('canary-promised');
  await using pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  await pool.flush();
  expect(service.requests[0]?.headers.authorization).toBe('Bearer canary-promised');
});

it('calls a token function again after a 401, and continues with the new token', async () => {
  await using service = await FakeService.start();
  const { token, asked } = counting('canary-rotating-');
  await using pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  service.script('acquire', only('canary-rotating-2', { status: 200, json: session() }));
  expect((await pool.acquire())?.session_id).toBe('session-1');
  expect(asked()).toBe(2);
  expect(service.requests).toHaveLength(2);
  expect(service.requests[1]?.body).toStrictEqual(service.requests[0]?.body);
});

it('calls a token function again after a 401 exactly once', async () => {
  await using service = await FakeService.start();
  const { token, asked } = counting('canary-rotating-');
  await using pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  service.script('flush', { status: 401, json: { code: 'unauthorized', message: 'no' } });
  const error = await rejection(pool.flush());
  expect(error).toMatchObject({ name: 'PoolServiceError', status: 401, code: 'unauthorized' });
  expect(asked()).toBe(2);
  expect(service.requests).toHaveLength(2);
});

it('does not repeat a request after a 401 with a constant token', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('flush', { status: 401, json: { code: 'unauthorized', message: 'no' } });
  expect(await rejection(pool.flush())).toBeInstanceOf(PoolServiceError);
  expect(service.requests).toHaveLength(1);
});

it.each<[string, () => unknown]>([
  ['undefined', () => undefined],
  ['an empty string', () => ''],
  ['a number', () => 5],
  ['a line break', () => 'canary-\r\nx-evil: 1'],
  ['spaces', () => 'canary- token'],
  ['a function', () => () => 'canary-inner-token'],
  ['an object', () => ({ token: 'canary-token' })],
  ['a promise of null', () => Promise.resolve(null)],
])(
  'rejects an invalid result of a token function, such as %s, before anything is sent',
  async (_what, token) => {
    await using service = await FakeService.start();
    await using pool = new BrowserPool('pool', {
      baseUrl: service.baseUrl,
      token: token as BrowserPoolOptions['token'],
    });
    const error = await rejection<InvalidOptionError>(pool.flush());
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.option).toBe('token');
    expect(service.requests).toHaveLength(0);
    expectNoSecret(error);
  },
);

it('rethrows an error of a token function unchanged', async () => {
  await using service = await FakeService.start();
  const own = new Error('the vault is closed');
  const token = () => Promise.reject(own);
  await using pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  expect(await rejection(pool.acquire())).toBe(own);
  expect(await rejection(pool.flush())).toBe(own);
  expect(service.requests).toHaveLength(0);
});

it('includes a slow token function in the timeout of a release', async () => {
  await using service = await FakeService.start();
  const token = () => new Promise<string>(() => {});
  const pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  const error = await rejection(pool.release('session-1', { timeout: 200 }));
  expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', sessionId: 'session-1' });
  expect(service.requests).toEqual([]);
  await pool.close();
});

it('rejects on abort during a slow token function, and sends nothing', async () => {
  await using service = await FakeService.start();
  let give!: (token: string) => void;
  const token = () => new Promise<string>((resolve) => (give = resolve));
  const pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
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

it('applies one timeout to both requests around a 401', async () => {
  await using service = await FakeService.start();
  const { token } = counting('canary-rotating-');
  const pool = new BrowserPool('pool', { baseUrl: service.baseUrl, token });
  service.script('release', { status: 401, delay: 1800 }, hang);
  // The first request starts the timer that all connections share: it must be a real one.
  await pool.flush();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let error: unknown;
  const releasing = rejection(pool.release('session-1', { timeout: 2000 })).then((late) => (error = late));
  await until(() => service.released.length === 1);
  vi.advanceTimersByTime(1800);
  await until(() => service.released.length === 2);
  vi.advanceTimersByTime(199);
  await settle();
  expect(error).toBeUndefined();
  vi.advanceTimersByTime(1);
  await releasing;
  expect(error).toMatchObject({ code: 'ERR_POOL_NO_RESPONSE', sessionId: 'session-1' });
  expect(service.released).toHaveLength(2);
  await pool.close();
});
