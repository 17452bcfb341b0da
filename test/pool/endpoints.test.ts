import { expect } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import { session, TOKEN } from '../support/fake-service.js';
import { it } from './support.js';

const JSON_TYPE = 'application/json; charset=utf-8';
/** The tags by which the library recognizes its own lease, and its owner. */
const LEASE_TAGS = {
  'pooled-browser-lease': expect.stringMatching(/^[\w-]{36}$/) as string,
  'pooled-browser-owner': expect.stringMatching(/^[\w.-]+\/\d+\/[\dT:.-]+Z$/) as string,
};

it('acquires with one POST that carries the token and the request as JSON', async ({ service, pool }) => {
  const request = {
    acquire_timeout_seconds: 7,
    name: 'run-1_a.B',
    tags: { team: 'a', 'any key': '' },
    start_url: 'https://example.com/?q=1',
  };
  const granted = await pool.acquire(request);
  expect(granted?.session_id).toBe('session-1');
  expect(service.requests).toHaveLength(1);
  const [seen] = service.requests;
  expect(seen).toMatchObject({ method: 'POST', path: '/browser_pools/pool/acquire' });
  expect(seen?.body).toStrictEqual({ ...request, tags: { ...request.tags, ...LEASE_TAGS } });
  expect(seen?.headers).toMatchObject({
    authorization: `Bearer ${TOKEN}`,
    'content-type': JSON_TYPE,
    accept: 'application/json',
  });
  expect(seen?.headers).not.toHaveProperty('accept-encoding');
});

it('acquires without further fields by default, and accepts any 2xx status', async ({ service, pool }) => {
  service.script('acquire', { status: 201, json: session({ session_id: 'fresh' }) });
  expect((await pool.acquire())?.session_id).toBe('fresh');
  await pool.acquire({ name: undefined, acquire_timeout_seconds: undefined });
  expect(service.requests.map(({ body }) => body)).toStrictEqual([
    { tags: LEASE_TAGS },
    { tags: LEASE_TAGS },
  ]);
  const [first, second] = service.requests.map(({ body }) => body!['tags'] as typeof LEASE_TAGS);
  expect(first!['pooled-browser-lease']).not.toBe(second!['pooled-browser-lease']);
});

it('returns null if no browser became available', async ({ service, pool }) => {
  service.script('acquire', { status: 204 });
  expect(await pool.acquire({ acquire_timeout_seconds: 0 })).toBeNull();
  expect(service.requests[0]?.body).toMatchObject({ acquire_timeout_seconds: 0 });
});

it('releases with a POST that names the session, for reuse by default', async ({ service, pool }) => {
  // Each confirms the release.
  service.script('release', { status: 200, text: 'done' }, { status: 202 }, { status: 204 });
  expect(await pool.release('session-1')).toBeUndefined();
  await pool.release('session-2', { reuse: false });
  await pool.release('session-3', { reuse: true });
  for (const { method, path, headers } of service.requests) {
    expect(`${method} ${path}`).toBe('POST /browser_pools/pool/release');
    expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'content-type': JSON_TYPE });
  }
  expect(service.requests.map(({ body }) => body)).toStrictEqual([
    { session_id: 'session-1', reuse: true },
    { session_id: 'session-2', reuse: false },
    { session_id: 'session-3', reuse: true },
  ]);
});

it('flushes with a POST without a body', async ({ service, pool }) => {
  expect(await pool.flush()).toBeUndefined();
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect(service.requests).toMatchObject([
    { method: 'POST', path: '/browser_pools/pool/flush', body: undefined, headers },
  ]);
  expect(service.requests[0]?.headers).not.toHaveProperty('content-type');
});

it('lists replays with complete links, without null and wrong-typed fields', async ({ service, pool }) => {
  const replays = [
    {
      replay_id: 'r1',
      started_at: '2026-01-02T03:04:05Z',
      finished_at: '2026-01-02T03:05:05Z',
      replay_view_url: 'https://replays.example.com/view?jwt=shown-on-purpose&replay_id=r1',
      size: { bytes: 12 },
    },
    {},
  ];
  const spoiled = { replay_id: 'r1', started_at: null, finished_at: 0, replay_view_url: false, future: null };
  service.script('replays', { status: 200, json: [...replays, spoiled] });
  expect(await pool.replays('s')).toStrictEqual([
    // Everybody with such a link can watch the recording.
    { ...replays[0], access: 'public' },
    {},
    { replay_id: 'r1', future: null },
  ]);
  expect(service.requests).toMatchObject([{ method: 'GET', path: '/browsers/s/replays', body: undefined }]);
  expect(service.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}` });
});

it('describes the pool without null and wrong-typed fields', async ({ service, pool }) => {
  const known = { id: 'pool-1', acquired_count: 2, browser_pool_config: { size: 5, color: 'blue' } };
  const json = { ...known, name: null, available_count: '3', region: 'here' };
  service.script('pool', { status: 200, json });
  expect(await pool.describe()).toStrictEqual({ ...known, region: 'here' });
  expect(service.requests).toMatchObject([{ method: 'GET', path: '/browser_pools/pool', body: undefined }]);
});

it('starts and stops a recording with the fields of the API', async ({ service, pool }) => {
  const known = { replay_id: 'r', replay_view_url: 'https://x/1', more: 1 };
  service.script('start-replay', { status: 201, json: { ...known, started_at: null, finished_at: 7 } });
  const replay = await pool.startReplay('s', { frameRate: 5, maxSeconds: 60 });
  expect(replay).toStrictEqual({ ...known, access: 'public' });
  await pool.startReplay('s');
  await pool.stopReplay('s', 'r');
  expect(service.requests.map(({ method, path, body }) => [method, path, body])).toStrictEqual([
    ['POST', '/browsers/s/replays', { framerate: 5, max_duration_in_seconds: 60 }],
    ['POST', '/browsers/s/replays', {}],
    ['POST', '/browsers/s/replays/r/stop', undefined],
  ]);
});

it.for(['/v1', '/v1/', '/v1//'])('prepends the path %s of the base URL', async (base, { service }) => {
  await using pool = new BrowserPool('pool', { ...service.options, baseUrl: service.baseUrl + base });
  await pool.flush().catch(() => {});
  expect(service.requests.map(({ path }) => path)).toStrictEqual(['/v1/browser_pools/pool/flush']);
});
