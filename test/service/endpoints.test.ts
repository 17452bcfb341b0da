import { expect, it } from 'vitest';
import { BrowserPool } from '../../src/service/browser-pool.js';
import { FakeService, session, TOKEN } from '../support/fake-service.js';

it('acquires with one POST that carries the token and the request as JSON', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
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
  expect(seen).toMatchObject({ method: 'POST', path: '/browser_pools/scrapers/acquire' });
  expect(seen?.body).toStrictEqual(request);
  expect(seen?.headers).toMatchObject({
    authorization: `Bearer ${TOKEN}`,
    'content-type': 'application/json',
    accept: 'application/json',
  });
  expect(seen?.headers).not.toHaveProperty('accept-encoding');
});

it('acquires with an empty object by default', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  await pool.acquire();
  await pool.acquire({ name: undefined, acquire_timeout_seconds: undefined });
  expect(service.requests.map(({ body }) => body)).toStrictEqual([{}, {}]);
});

it('returns null if no browser became available', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  service.script('acquire', { status: 204 });
  expect(await pool.acquire({ acquire_timeout_seconds: 0 })).toBeNull();
  expect(service.requests[0]?.body).toStrictEqual({ acquire_timeout_seconds: 0 });
});

it('releases with a POST that names the session, for reuse by default', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  await pool.release('session-1');
  await pool.release('session-2', { reuse: false });
  await pool.release('session-3', { reuse: true });
  expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toStrictEqual(
    Array.from({ length: 3 }, () => 'POST /browser_pools/scrapers/release'),
  );
  expect(service.requests.map(({ body }) => body)).toStrictEqual([
    { session_id: 'session-1', reuse: true },
    { session_id: 'session-2', reuse: false },
    { session_id: 'session-3', reuse: true },
  ]);
  for (const { headers } of service.requests) {
    expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' });
  }
});

it.each([200, 202, 204])('accepts %i as the confirmation of a release and of a flush', async (status) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  service.script('release', { status, text: status === 204 ? '' : 'done' });
  service.script('flush', { status, text: status === 204 ? '' : 'done' });
  expect(await pool.release('session-1')).toBeUndefined();
  expect(await pool.flush()).toBeUndefined();
});

it('flushes with a POST without a body', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  await pool.flush();
  expect(service.requests).toMatchObject([
    { method: 'POST', path: '/browser_pools/scrapers/flush', body: undefined },
  ]);
  expect(service.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}` });
  expect(service.requests[0]?.headers).not.toHaveProperty('content-type');
});

it('lists the replays of a session with a GET, with complete links and unknown fields', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
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
  service.script('replays', { status: 200, json: replays });
  expect(await pool.replays('session-1')).toStrictEqual(replays);
  expect(service.requests).toMatchObject([
    { method: 'GET', path: '/browsers/session-1/replays', body: undefined },
  ]);
  expect(service.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}` });
});

it('omits the fields of a replay that are null or have a wrong type', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  service.script('replays', {
    status: 200,
    json: [{ replay_id: 'r1', started_at: null, finished_at: 0, replay_view_url: false, future: null }],
  });
  expect(await pool.replays('session-1')).toStrictEqual([{ replay_id: 'r1', future: null }]);
});

it('describes the pool with a GET, with unknown fields, without null and wrong-typed fields', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  service.script('pool', {
    status: 200,
    json: {
      id: 'pool-1',
      name: null,
      available_count: '3',
      acquired_count: 2,
      browser_pool_config: { size: 5, color: 'blue' },
      region: 'here',
    },
  });
  expect(await pool.describe()).toStrictEqual({
    id: 'pool-1',
    acquired_count: 2,
    browser_pool_config: { size: 5, color: 'blue' },
    region: 'here',
  });
  expect(service.requests).toMatchObject([
    { method: 'GET', path: '/browser_pools/scrapers', body: undefined },
  ]);
});

it('encodes the pool and the session id as one segment of the path', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('my pool?é#1', service.options);
  await pool.flush();
  await pool.release('any');
  await pool.replays('id ?x=1&y#z');
  expect(service.requests.map(({ path }) => path)).toStrictEqual([
    '/browser_pools/my%20pool%3F%C3%A9%231/flush',
    '/browser_pools/my%20pool%3F%C3%A9%231/release',
    '/browsers/id%20%3Fx%3D1%26y%23z/replays',
  ]);
});

it.each(['/v1', '/v1/', '/v1//'])('prepends the path %s of the base URL', async (base) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', { ...service.options, baseUrl: service.baseUrl + base });
  await pool.flush().catch(() => {});
  expect(service.requests.map(({ path }) => path)).toStrictEqual(['/v1/browser_pools/scrapers/flush']);
});

it('sends nothing before its first call, and shows its address', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  expect(pool.idOrName).toBe('scrapers');
  expect(pool.baseUrl).toBe(`${service.baseUrl}/`);
  expect(service.connections.made).toBe(0);
});

it('accepts a session in a response with any 2xx status', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('scrapers', service.options);
  service.script('acquire', { status: 201, json: session({ session_id: 'fresh' }) });
  expect((await pool.acquire())?.session_id).toBe('fresh');
});
