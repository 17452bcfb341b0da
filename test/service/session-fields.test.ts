import { expect, it } from 'vitest';
import { isPooledBrowserError } from '../../src/shared/errors.js';
import { PoolResponseError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import type { PoolEvent } from '../../src/service/events.js';
import type { BrowserSession } from '../../src/service/wire.js';
import { FakeService, session, type Answer } from '../support/fake-service.js';
import { asJson, expectNoSecret, rejection } from './support.js';

/** Returns the session of a response with these fields. */
async function grant(fields: Record<string, unknown>): Promise<BrowserSession> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(fields) });
  const granted = await pool.acquire();
  expect(service.released).toStrictEqual([]);
  return granted!;
}

/** Returns the error of an invalid session, after its release. */
async function refuse(answer: Answer) {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', answer);
  const events: PoolEvent[] = [];
  const error = await rejection(pool.acquire({ name: 'n' }, { onEvent: (event) => events.push(event) }));
  await pool.close();
  expectNoSecret(error);
  expectNoSecret(events);
  return { error, events, released: service.released };
}

const OPTIONAL = {
  browser_live_view_url: 'https://live.example.com/view',
  base_url: 'https://session.example.com/control',
  gpu: true,
  name: 'run-1',
  profile: { id: 'p1', name: 'me', created_at: '2026-01-02T03:04:05Z', mood: 'new field' },
  proxy_id: 'proxy-1',
  pool: { id: 'pool-1', name: 'pool' },
  viewport: { width: 800, height: 600, refresh_rate: 25 },
  kiosk_mode: false,
  start_url: 'https://example.com/',
  chrome_policy: { HomepageLocation: 'https://example.com/', Deep: { er: [1, null] } },
  tags: { team: 'a' },
  deleted_at: '2026-01-02T03:04:05Z',
  usage: { uptime_ms: 5 },
  telemetry: { browser: { console: { enabled: true } } },
};

it('returns every field of the API unchanged', async () => {
  expect(await grant(OPTIONAL)).toMatchObject(session(OPTIONAL));
});

it('keeps unknown fields, including null and nested ones', async () => {
  const unknown = { future: { deep: [1, { a: null }] }, region: 'here', nothing: null, zero: 0 };
  expect(await grant(unknown)).toMatchObject(unknown);
});

it('hides a jwt of one of its URLs in every other field, too, including earlier fields', async () => {
  const jwt = 'opaque-and-in-two-places';
  // Numeric keys come first, whatever their place in the JSON.
  const granted = await grant({ 1: jwt, cdp_ws_url: `wss://browsers.test/cdp?jwt=${jwt}`, zone: jwt });
  expect(granted['1']).toBe(jwt);
  for (const shown of [granted, { ...granted }]) expect(JSON.stringify(shown)).not.toContain(jwt);
});

it.each(Object.keys(OPTIONAL))('treats a wrong-typed %s as missing', async (field) => {
  expect(await grant({ [field]: 7 })).not.toHaveProperty(field);
  expect(await grant({ [field]: [] })).not.toHaveProperty(field);
});

it.each(Object.keys(OPTIONAL).filter((field) => field !== 'telemetry'))(
  'treats a null %s as missing',
  async (field) => {
    expect(await grant({ [field]: null })).not.toHaveProperty(field);
  },
);

it('keeps null as telemetry, which the API allows', async () => {
  expect((await grant({ telemetry: null })).telemetry).toBeNull();
});

it.each([
  ['profile', { id: 'p1', name: null, last_used_at: 5 }, { id: 'p1' }],
  ['pool', { id: 'pool-1', name: null }, { id: 'pool-1' }],
  ['tags', { team: 'a', count: 5, none: null }, { team: 'a' }],
  ['usage', { uptime_ms: 'long' }, {}],
])('treats null and wrong-typed fields inside %s as missing', async (field, given, expected) => {
  expect((await grant({ [field]: given }))[field]).toStrictEqual(expected);
});

it('drops a viewport without a width or a height, which are required numbers', async () => {
  expect(await grant({ viewport: { width: 'wide', height: 600 } })).not.toHaveProperty('viewport');
});

it.each(['toJSON', 'constructor', 'then', 'hasOwnProperty', 'toString'])(
  'accepts an unknown field named %s',
  async (field) => {
    const granted = await grant({ [field]: 'a string' });
    expect(granted.session_id).toBe('session-1');
    expect(asJson(granted)).toMatchObject({ session_id: 'session-1' });
  },
);

it('drops __proto__ at any depth', async () => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  const poisoned = `{"__proto__": {"polluted": 1}, "usage": {"__proto__": {"polluted": 1}, "uptime_ms": 1},`;
  const text = JSON.stringify(session()).replace('{', poisoned);
  service.script('acquire', { status: 200, text, headers: { 'content-type': 'application/json' } });
  const granted = await pool.acquire();
  expect(granted).not.toHaveProperty('polluted');
  expect(granted?.usage).toStrictEqual({ uptime_ms: 1 });
  expect({}).not.toHaveProperty('polluted');
});

const REQUIRED = Object.keys(session());

it.each(REQUIRED)('rejects a session without %s, and releases it if its id is present', async (field) => {
  for (const value of [undefined, null, {}, [], field === 'headless' || field === 'stealth' ? 'yes' : true]) {
    const { error, events, released } = await refuse({ status: 200, json: session({ [field]: value }) });
    expect(error).toBeInstanceOf(PoolResponseError);
    expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', status: 200, pool: 'pool' });
    expect(error.message).toContain(field);
    if (field === 'session_id') {
      expect(released).toStrictEqual([]);
      expect(events).toMatchObject([{ type: 'outcome-unknown', pool: 'pool', name: 'n', error }]);
    } else {
      expect(released).toStrictEqual(['session-1']);
      expect(error).toMatchObject({ sessionId: 'session-1' });
      expect(events).toMatchObject([
        { type: 'grant-orphaned', pool: 'pool', name: 'n', sessionId: 'session-1' },
        { type: 'released', pool: 'pool', sessionId: 'session-1', released: 'reused' },
      ]);
    }
  }
});

it.each(['', '..', 'a/b', 'a%2fb', 'a\r\nb'])(
  'rejects a session whose id %j could not be released later',
  // Less than the time after which the release of an orphan is given up.
  { timeout: 25_000 },
  async (id) => {
    await using service = await FakeService.start();
    const pool = new BrowserPool('pool', service.options);
    service.script('acquire', { status: 200, json: session({ session_id: id }) });
    const error = await rejection(pool.acquire());
    await service.close();
    expect(error).toBeInstanceOf(PoolResponseError);
    expect(error.message).toContain('session_id');
    await pool.close();
  },
);

it('releases the effective session id of a broken session that has two', async () => {
  const text = `{"session_id": "first", "session_id": "last", "headless": true}`;
  const { released } = await refuse({ status: 200, text, headers: { 'content-type': 'application/json' } });
  expect(released).toStrictEqual(['last']);
});

it('releases a broken session whose id is written with escapes', async () => {
  const text = `{"session_id": "session\\u002d1", "headless": true}`;
  const { released } = await refuse({ status: 200, text, headers: { 'content-type': 'application/json' } });
  expect(released).toStrictEqual(['session-1']);
});

it.each([500, 2000, 3000, 4000, 5000, 6000, 8000, 20_000, 1_000_000])(
  'returns or releases a session with JSON %i levels deep, without an internal error',
  async (depth) => {
    await using service = await FakeService.start();
    const pool = new BrowserPool('pool', service.options);
    const deep = `{"usage": {"deep": ${'['.repeat(depth)}${']'.repeat(depth)}},`;
    const text = JSON.stringify(session()).replace('{', deep);
    service.script('acquire', { status: 200, text, headers: { 'content-type': 'application/json' } });
    const [handed, error] = await pool.acquire().then(
      (granted) => [granted!.session_id, undefined],
      (error: unknown) => [undefined, error],
    );
    await pool.close();
    expect([...service.released, handed].filter(Boolean)).toStrictEqual(['session-1']);
    if (error) expect(isPooledBrowserError(error)).toBe(true);
  },
);
