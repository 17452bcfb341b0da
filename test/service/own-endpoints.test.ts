import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  BrowserPool,
  InvalidOptionError,
  PoolServiceError,
  withPooledBrowser,
  type EndpointOptions,
  type RunOptions,
} from '../../src/index.js';
import { session } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { expectNoSecret, rejection } from './support.js';

const REPLAY = { replay_id: 'r-1', replay_view_url: 'https://watch.example.com/r-1', finished_at: 'now' };
const TOKEN = 'the-token-of-the-service';

let server: Server;
let browser: PlayedBrowser;
let pool: BrowserPool;
/** Method, path, authorization and body of each request. */
let requests: { what: string; authorization: unknown; body: unknown }[];
let status: number;

/** A service that releases and records at other paths. */
beforeEach(async () => {
  browser = await PlayedBrowser.start();
  requests = [];
  status = 200;
  server = createServer(
    (request, response) =>
      void answer(request).then(([code, json]) => {
        response.writeHead(code, { 'content-type': 'application/json' });
        response.end(json === undefined ? '' : JSON.stringify(json));
      }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  pool = newPool(OWN_PATHS);
});

afterEach(async () => {
  await pool.close();
  server.closeAllConnections();
  await once(server.close(), 'close');
  await browser[Symbol.asyncDispose]();
});

const OWN_PATHS: EndpointOptions = {
  release: ({ sessionId, reuse, send }) => send('PUT', `/sessions/${sessionId}/lease`, { keep: reuse }),
  startReplay: async ({ sessionId, framerate, send }) =>
    (await send('POST', `/sessions/${sessionId}/video`, { fps: framerate })) as typeof REPLAY,
  stopReplay: ({ sessionId, replayId, send }) => send('DELETE', `/sessions/${sessionId}/video/${replayId}`),
};

function newPool(endpoints: EndpointOptions): BrowserPool {
  const { port } = server.address() as AddressInfo;
  return new BrowserPool('test', { baseUrl: `http://127.0.0.1:${port}/api`, token: TOKEN, endpoints });
}

async function answer(request: IncomingMessage): Promise<[number, unknown]> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const what = `${request.method} ${request.url}`;
  const { authorization } = request.headers;
  requests.push({ what, authorization, body: text === '' ? undefined : (JSON.parse(text) as unknown) });
  const url = browser.url;
  if (what.endsWith('/acquire')) return [200, session({ cdp_ws_url: url, webdriver_ws_url: url })];
  if (what.endsWith('/replays')) return [200, requests.length < 6 ? [] : [REPLAY]];
  if (what.startsWith('POST')) return [status, status === 200 ? REPLAY : { code: 'busy', message: 'no' }];
  return [status, undefined];
}

const run = (options: RunOptions = {}) =>
  withPooledBrowser(pool, () => 'value', { connector: plainConnector, ...options });

describe('a service with its own paths', () => {
  it('receives its own requests for the release and the recording, with the token', async () => {
    const result = await run({ replays: 'record', recording: { frameRate: 5 } });
    expect(result).toMatchObject({
      value: 'value',
      released: 'reused',
      replays: [REPLAY],
      cleanupErrors: [],
    });
    const own = requests.filter(({ what }) => what.includes('/sessions/'));
    expect(own).toEqual([
      { what: 'POST /api/sessions/session-1/video', authorization: `Bearer ${TOKEN}`, body: { fps: 5 } },
      { what: 'DELETE /api/sessions/session-1/video/r-1', authorization: `Bearer ${TOKEN}`, body: undefined },
      { what: 'PUT /api/sessions/session-1/lease', authorization: `Bearer ${TOKEN}`, body: { keep: true } },
    ]);
    expect(requests.every(({ what }) => !what.endsWith('/release') && !what.endsWith('/stop'))).toBe(true);
  });

  it('causes the errors of the API, without the token', async () => {
    status = 403;
    const error = await rejection(pool.release('session-1'));
    expect(error).toBeInstanceOf(PoolServiceError);
    expect(error).toMatchObject({ status: 403, pool: 'test', sessionId: 'session-1' });
    expectNoSecret(error);
  });

  it('receives a temporarily failing release again', async () => {
    status = 503;
    const releases = () => requests.filter(({ what }) => what.startsWith('PUT'));
    const running = run();
    await expect.poll(() => releases().length).toBe(1);
    status = 204;
    expect(await running).toMatchObject({ released: 'reused' });
    expect(releases()).toHaveLength(2);
  });
});

it.each<[string, EndpointOptions['startReplay']]>([
  [
    'throws',
    () => {
      throw new Error('own');
    },
  ],
  ['returns no replay', () => undefined as never],
])('a startReplay that %s does not fail the run', async (_how, startReplay) => {
  pool = newPool({ ...OWN_PATHS, startReplay });
  expect(await run({ replays: 'record' })).toMatchObject({
    value: 'value',
    released: 'reused',
    replayStatus: 'unavailable',
  });
});

it('a stopReplay that ignores its signal does not delay the release beyond replaysTimeout', async () => {
  pool = newPool({ ...OWN_PATHS, stopReplay: () => new Promise(() => {}) });
  let start!: () => void;
  const started = new Promise<void>((resolve) => (start = resolve));
  const onEvent: RunOptions['onEvent'] = ({ type }) => type === 'recording-started' && start();
  // The timeout, which also covers the end of the start, begins when the callback ends.
  const options = { connector: plainConnector, replays: 'record', replaysTimeout: 300, onEvent } as const;
  const result = await withPooledBrowser(pool, () => started.then(() => 'value'), options);
  expect(result).toMatchObject({ value: 'value', released: 'reused', replays: [REPLAY] });
});

it('a release that never ends is reported after releaseTimeout', async () => {
  pool = newPool({ release: () => new Promise(() => {}) });
  expect(await run({ releaseTimeout: 300 })).toMatchObject({ value: 'value', released: 'unknown' });
});

it('refuses releaseOnCrash, because a function cannot run after a crash', async () => {
  const error = await rejection(run({ releaseOnCrash: true }));
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error.message).toMatch(/releaseOnCrash needs the default release request/);
  expect(requests).toEqual([]);
});

it('refuses a path that does not begin with a slash, and endpoints that do not exist', async () => {
  pool = newPool({ release: ({ send }) => send('POST', 'release') });
  expect(await rejection(pool.release('session-1'))).toMatchObject({ option: 'path' });
  expect(() => newPool({ relaese: () => {} } as object)).toThrow(
    'endpoints has no option relaese. Did you mean release?',
  );
});
