import { expect, it, vi } from 'vitest';
import {
  attachBrowser,
  ConnectError,
  leaseBrowser,
  mapPooledBrowsers,
  withPooledBrowser,
} from '../../src/index.js';
import { PlayedLease } from '../support/played-lease.js';

type Call = (played: PlayedLease) => Promise<unknown>;

const wait = () => new Promise<void>(() => {});

/** Rejects as the public functions do. */
async function consume({ pool, connector }: PlayedLease): Promise<void> {
  for await (const outcome of mapPooledBrowsers(pool, [1], () => {}, { connector })) void outcome;
}

const run =
  (options: object = {}): Call =>
  async ({ pool, connector }) =>
    withPooledBrowser(pool, wait, { connector, release: 'reuse', ...options });
const lease: Call = async ({ pool, connector }) => leaseBrowser(pool, { connector });
const attach: Call = async ({ pool, connector }) => {
  const detached = await (await leaseBrowser(pool, { connector })).detach();
  vi.spyOn(connector, 'connect').mockRejectedValue(new ConnectError('broken'));
  return attachBrowser(detached, { connector, pool });
};
const refuse =
  (status: number) =>
  ({ service }: PlayedLease) =>
    ['acquire', 'release', 'replays'].forEach((route) => service.script(route as 'acquire', { status }));
const noBrowser = ({ service }: PlayedLease) => service.script('acquire', { status: 204 });
const broken = ({ connector }: PlayedLease) =>
  void vi.spyOn(connector, 'connect').mockRejectedValue(new Error('broken'));

it.each<[string, string, Call, (played: PlayedLease) => void]>([
  ['PoolServiceError', 'withPooledBrowser (401)', run(), refuse(401)],
  ['PoolServiceError', 'withPooledBrowser (404)', run(), refuse(404)],
  ['PoolServiceError', 'leaseBrowser (401)', lease, refuse(401)],
  ['PoolServiceError', 'mapPooledBrowsers (401)', consume, refuse(401)],
  ['PoolServiceError', 'pool.acquire (401)', ({ pool }) => pool.acquire(), refuse(401)],
  ['PoolServiceError', 'pool.release (404)', ({ pool }) => pool.release('a'), refuse(404)],
  ['PoolServiceError', 'pool.replays (401)', ({ pool }) => pool.replays('a'), refuse(401)],
  ['CallbackTimeoutError', 'withPooledBrowser', run({ timeout: 5 }), () => {}],
  ['LeaseExpiredError', 'withPooledBrowser', run({ lifetime: 5 }), () => {}],
  ['AcquireTimeoutError', 'withPooledBrowser', run({ acquireTimeout: 50 }), noBrowser],
  ['ConnectError', 'withPooledBrowser', run(), broken],
  ['ConnectError', 'leaseBrowser', lease, broken],
  ['ConnectError', 'attachBrowser', attach, () => {}],
])('the stack of a %s of %s contains the line of the caller, once', async (name, _of, call, prepare) => {
  await using played = await PlayedLease.start();
  prepare(played);
  async function caller() {
    return await call(played);
  }
  const error = await caller().then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  expect(error?.name).toBe(name);
  const lines = error!.stack!.split('\n').filter((line) => line.includes('call-site.test.ts'));
  expect(lines.length, error!.stack).toBeGreaterThan(0);
  expect(new Set(lines).size).toBe(lines.length);
  vi.restoreAllMocks();
});

it('does not change the stack of the error that the callback threw', async () => {
  await using played = await PlayedLease.start();
  const own = new TypeError('of the caller');
  const { stack } = own;
  const { error } = await played.run(
    () => {
      throw own;
    },
    { release: 'reuse' },
  );
  expect(error).toBe(own);
  expect(own.stack).toBe(stack);
});
