import { afterEach, beforeEach, expect } from 'vitest';
import {
  BrowserPool,
  InvalidOptionError,
  PoolServiceError,
  withPooledBrowser,
  type EndpointOptions,
  type RunOptions,
} from '../../src/index.js';
import { session, TOKEN, type FakeService, type SeenRequest } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { expectNoSecret, it, rejection } from './support.js';

/** The default paths of another session: the fake service answers them. */
const OWN: EndpointOptions = {
  release: ({ sessionId, reuse, send }) =>
    send('POST', '/browser_pools/own/release', { session_id: sessionId, keep: reuse }),
  startReplay: async ({ framerate, send }) =>
    (await send('POST', '/browsers/own/replays', { framerate })) as never,
  stopReplay: ({ replayId, send }) => send('POST', `/browsers/own/replays/${replayId}/stop`),
};

let browser: PlayedBrowser;
const pools: BrowserPool[] = [];

beforeEach(async () => {
  browser = await PlayedBrowser.start();
});

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
  await browser[Symbol.asyncDispose]();
});

function poolWith(service: FakeService, endpoints: EndpointOptions): BrowserPool {
  const urls = { cdp_ws_url: browser.url, webdriver_ws_url: browser.url };
  service.script('acquire', { status: 200, json: session(urls) });
  const pool = new BrowserPool('test', { ...service.options, endpoints });
  pools.push(pool);
  return pool;
}

const run = (service: FakeService, endpoints: EndpointOptions, options: RunOptions = {}) =>
  withPooledBrowser(poolWith(service, endpoints), () => 'value', { connector: plainConnector, ...options });

it('a service with its own paths receives its own requests, with the token', async ({ service }) => {
  const result = await run(service, OWN, { replays: 'record', recording: { frameRate: 5 } });
  expect(result).toMatchObject({ value: 'value', released: 'reused', cleanupErrors: [] });
  const isOwn = ({ path }: SeenRequest) => path.includes('/own/');
  expect(service.requests.filter(isOwn).map(({ path, body }) => [path, body])).toEqual([
    ['/browsers/own/replays', { framerate: 5 }],
    ['/browsers/own/replays/replay-1/stop', undefined],
    ['/browser_pools/own/release', { session_id: 'session-1', keep: true }],
  ]);
  for (const { headers } of service.requests) expect(headers.authorization).toBe(`Bearer ${TOKEN}`);
  const others = service.requests
    .filter((request) => !isOwn(request))
    .map(({ path }) => path.split('/').at(-1));
  expect(new Set(others)).toEqual(new Set(['acquire', 'replays']));
});

it('a service with its own paths receives a failed release again', async ({ service }) => {
  service.script('release', { status: 403 }, { status: 503 }, { status: 204 });
  const error = await rejection(poolWith(service, OWN).release('session-1'));
  expect(error).toBeInstanceOf(PoolServiceError);
  expect(error).toMatchObject({ status: 403, pool: 'test', sessionId: 'session-1' });
  expectNoSecret(error);
  expect(await run(service, OWN)).toMatchObject({ released: 'reused' });
  expect(service.released).toHaveLength(3);
});

it('a startReplay that returns no replay does not fail the run', async ({ service }) => {
  const startReplay = () => undefined as never;
  const result = await run(service, { ...OWN, startReplay }, { replays: 'record' });
  expect(result).toMatchObject({ value: 'value', released: 'reused', replayStatus: 'unavailable' });
});

it('a release that never ends is reported after releaseTimeout', async ({ service }) => {
  const result = await run(service, { release: () => new Promise(() => {}) }, { releaseTimeout: 300 });
  expect(result).toMatchObject({ value: 'value', released: 'unknown' });
});

it('refuses releaseOnCrash, a path without a slash, and endpoints that do not exist', async ({ service }) => {
  const error = await rejection(run(service, OWN, { releaseOnCrash: true }));
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error.message).toMatch(/releaseOnCrash needs the default release request/);
  const pool = poolWith(service, { release: ({ send }) => send('POST', 'release') });
  expect(await rejection(pool.release('session-1'))).toMatchObject({ option: 'path' });
  expect(() => poolWith(service, { relaese: () => {} } as object)).toThrow(
    'endpoints has no option relaese. Did you mean release?',
  );
  expect(service.requests).toEqual([]);
});
