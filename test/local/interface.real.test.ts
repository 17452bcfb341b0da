import { describe, expect, it } from 'vitest';
import type { BrowserSession } from '../../src/index.js';
import { startApi } from './support.js';

const api = await startApi({
  pools: [
    { name: 'default', size: 1, viewport: { width: 1000, height: 700 }, timeoutSeconds: 300 },
    { name: 'other', id: 'other-id', size: 1, startUrl: 'about:blank', fillRatePerMinute: 1000 },
  ],
});

describe('acquire', () => {
  it('answers 200 with all fields of a session', async () => {
    const request = { name: 'a.b_c-1', tags: { team: 'x', run: '7' }, start_url: 'data:text/html,hi' };
    const session = await api.lease(request);
    expect(session).toMatchObject({
      ...request,
      headless: true,
      stealth: false,
      timeout_seconds: 300,
      viewport: { width: 1000, height: 700 },
      pool: { name: 'default' },
      telemetry: null,
    });
    const host = new URL(api.pool.baseUrl).host;
    const id = session.session_id;
    expect(session.cdp_ws_url).toMatch(
      new RegExp(`^ws://${host}/browsers/${id}/cdp\\?jwt=[\\w-]+\\.[\\w-]+\\.[\\w-]+$`),
    );
    expect(session.webdriver_ws_url).toMatch(
      new RegExp(`^ws://${host}/browsers/${id}/session\\?jwt=[\\w.-]+$`),
    );
    expect(new Date(session.created_at).toISOString()).toBe(session.created_at);
    expect(session).not.toHaveProperty('browser_live_view_url');
    expect(await api.release(session)).toBe(204);
  });

  it('finds a pool by its id, and omits the fields that were not requested', async () => {
    const session = await api.lease({}, 'other-id');
    expect(session.pool).toEqual({ id: 'other-id', name: 'other' });
    expect(session.start_url).toBe('about:blank');
    for (const field of ['name', 'tags']) expect(session).not.toHaveProperty(field);
    await api.release(session);
  });

  it('accepts an empty body and unknown fields', async () => {
    const path = '/browser_pools/default/acquire';
    for (const body of [undefined, '', '{"new_field": {"a": [1]}, "__proto__": {"name": 7}}']) {
      const reply = await api.call('POST', path, { body });
      expect(reply.status).toBe(200);
      await api.call('POST', '/browser_pools/default/release', { body: reply.body });
    }
  });

  it('lists all wrong fields in the details', async () => {
    const tags = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, 'v']));
    const body = { acquire_timeout_seconds: 1.5, name: 'no spaces', tags, start_url: 'not a url' };
    const reply = await api.call('POST', '/browser_pools/default/acquire', { body });
    expect(reply.status).toBe(400);
    expect(reply.body.code).toBe('bad_request');
    expect(reply.body.details?.map(({ code, message }) => [code, message?.split(' ')[0]])).toEqual([
      ['invalid_input', 'acquire_timeout_seconds'],
      ['invalid_input', 'name'],
      ['invalid_input', 'tags'],
      ['invalid_input', 'start_url'],
    ]);
  });

  it.each(['{', '[]', '"text"', 'null', '7'])('refuses the body %s', async (body) => {
    const reply = await api.call('POST', '/browser_pools/default/acquire', { body });
    expect(reply).toMatchObject({ status: 400, body: { code: 'bad_request' } });
  });

  it('refuses a huge body with 413', async () => {
    const body = { name: 'x'.repeat(3_000_000) };
    const reply = await api.call('POST', '/browser_pools/default/acquire', { body });
    expect(reply).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
  });
});

it('counts and describes the browsers in the pool record', async () => {
  const session = await api.lease();
  expect(await api.record()).toMatchObject({
    id: session.pool!.id,
    name: 'default',
    available_count: 0,
    acquired_count: 1,
    browser_pool_config: { size: 1, timeout_seconds: 300, headless: true, stealth: false },
  });
  await api.release(session);
  expect(await api.record()).toMatchObject({ available_count: 1, acquired_count: 0 });
  expect(await api.record('other')).toMatchObject({
    browser_pool_config: { fill_rate_per_minute: 1000, start_url: 'about:blank' },
  });
});

describe('the list of sessions', () => {
  const list = async (query = '') => {
    const { status, body } = await api.call('GET', `/browsers${query}`);
    expect(status).toBe(200);
    return body as unknown as BrowserSession[];
  };

  it('contains the leased sessions of all pools, and with tags in its query only those that have all of them', async () => {
    expect(await list()).toEqual([]);
    const first = await api.lease({ tags: { team: 'x', run: 'a b' } });
    const second = await api.lease({ tags: { team: 'x' } }, 'other');
    const ids = async (query?: string) => (await list(query)).map(({ session_id }) => session_id);
    // Each read signs a JWT of its own, which ends at another second.
    const withoutJwt = (value: unknown) => JSON.stringify(value).replaceAll(/jwt=[^"]*/g, '');
    const { body } = await api.call('GET', `/browsers/${first.session_id}`);
    expect(withoutJwt(await list('?tags[run]=a%20b'))).toEqual(withoutJwt([body]));
    expect(await ids()).toEqual([first.session_id, second.session_id]);
    expect(await ids('?tags[team]=x')).toEqual([first.session_id, second.session_id]);
    expect(await ids('?tags%5Bteam%5D=x&tags%5Brun%5D=a+b')).toEqual([first.session_id]);
    expect(await ids('?tags[team]=x&tags[run]=other')).toEqual([]);
    await api.release(first);
    expect(await ids()).toEqual([second.session_id]);
    await api.release(second);
  });
});

it('lists no replays of a browser that was not recorded, leased or idle', async () => {
  const session = await api.lease();
  const path = `/browsers/${session.session_id}/replays`;
  expect(await api.call('GET', path)).toMatchObject({ status: 200, body: [] });
  await api.release(session);
  expect(await api.call('GET', path)).toMatchObject({ status: 200, body: [] });
});

describe('an unknown path or method', () => {
  it.each([
    ['POST', '/browser_pools/nobody/acquire'],
    ['POST', '/browser_pools/nobody/flush'],
    ['POST', '/browser_pools/nobody/release'],
    ['GET', '/browser_pools/nobody'],
    ['GET', '/browser_pools/%ff'],
    ['GET', '/browsers/nobody/replays'],
    ['DELETE', '/browsers/nobody'],
    ['GET', '/nowhere'],
    ['POST', '/browser_pools/default/acquire/more'],
  ])('answers %s %s with 404', async (method, path) => {
    expect(await api.call(method, path)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });

  it.each([
    ['GET', '/browser_pools/default/acquire', 'POST'],
    ['DELETE', '/browser_pools/default', 'GET'],
    ['DELETE', '/browsers/x/replays', 'GET, POST'],
    ['GET', '/browsers/x/replays/y/stop', 'POST'],
  ])('answers %s %s with 405 and lists the allowed methods', async (method, path, allow) => {
    const reply = await api.call(method, path);
    expect(reply).toMatchObject({ status: 405, body: { code: 'method_not_allowed' }, headers: { allow } });
  });
});

it.each([
  ['/browser_pools/default', 200],
  ['/pages/base.css', 200],
  ['/nowhere', 404],
  ['/browser_pools/default/acquire', 405],
])('answers HEAD %s with %i and without a body', async (path, status) => {
  const { body, headers, ...head } = await api.call('HEAD', path);
  expect({ ...head, body }).toEqual({ status, body: {} });
  expect(Number(headers['content-length'])).toBeGreaterThan(0);
});

it('gives every response a unique x-request-id', async () => {
  const replies = [await api.call('GET', '/browser_pools/default'), await api.call('GET', '/nowhere')];
  const ids = replies.map(({ headers }) => headers['x-request-id']);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(id).toMatch(/^[\w-]{20,}$/);
});

describe('release', () => {
  it.each([{}, { session_id: 7 }, { session_id: 'x', reuse: 'yes' }])('refuses %j', async (body) => {
    const reply = await api.call('POST', '/browser_pools/default/release', { body });
    expect(reply).toMatchObject({ status: 400, body: { details: [{ code: 'invalid_input' }] } });
  });

  it('answers 404 for a session that is not leased, or from another pool', async () => {
    const session = await api.lease();
    const body = { session_id: session.session_id };
    expect((await api.call('POST', '/browser_pools/other/release', { body })).status).toBe(404);
    expect(await api.release(session)).toBe(204);
    expect(await api.release(session)).toBe(404);
  });
});
