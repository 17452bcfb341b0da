import { expect } from 'vitest';
import { isPooledBrowserError } from '../../src/shared/errors.js';
import { PoolResponseError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import type { BrowserSession } from '../../src/index.js';
import { FakeService, session } from '../support/fake-service.js';
import { asJson, it, refusedGrant } from './support.js';

/** Returns the session of a response with these fields. */
async function grant(fields: Record<string, unknown>): Promise<BrowserSession> {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('acquire', { status: 200, json: session(fields) });
  const granted = await pool.acquire();
  expect(service.released).toStrictEqual([]);
  return granted!;
}

const JSON_TYPE = { 'content-type': 'application/json' };

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

it('returns every field of the API unchanged, and unknown fields, including null and nested ones', async () => {
  const unknown = { future: { deep: [1, { a: null }] }, region: 'here', nothing: null, zero: 0 };
  expect(await grant({ ...OPTIONAL, ...unknown })).toMatchObject(session({ ...OPTIONAL, ...unknown }));
});

it('hides a jwt of one of its URLs in every other field, too, including earlier fields', async () => {
  const jwt = 'opaque-and-in-two-places';
  // Numeric keys come first, whatever their place in the JSON.
  const granted = await grant({ 1: jwt, cdp_ws_url: `wss://browsers.test/cdp?jwt=${jwt}`, zone: jwt });
  expect(granted['1']).toBe(jwt);
  for (const shown of [granted, { ...granted }]) expect(JSON.stringify(shown)).not.toContain(jwt);
});

it.for(Object.keys(OPTIONAL))('treats a %s that is null or has a wrong type as missing', async (field) => {
  for (const value of [7, []]) expect(await grant({ [field]: value })).not.toHaveProperty(field);
  const withNull = await grant({ [field]: null });
  // The API allows null as telemetry.
  if (field === 'telemetry') expect(withNull.telemetry).toBeNull();
  else expect(withNull).not.toHaveProperty(field);
});

it.for<[string, object, object]>([
  ['profile', { id: 'p1', name: null, last_used_at: 5 }, { id: 'p1' }],
  ['pool', { id: 'pool-1', name: null }, { id: 'pool-1' }],
  ['tags', { team: 'a', count: 5, none: null }, { team: 'a' }],
  ['usage', { uptime_ms: 'long' }, {}],
])('treats null and wrong-typed fields inside %s as missing', async ([field, given, expected]) => {
  expect((await grant({ [field]: given }))[field]).toStrictEqual(expected);
});

it('drops a viewport without a width or a height, which are required numbers', async () => {
  expect(await grant({ viewport: { width: 'wide', height: 600 } })).not.toHaveProperty('viewport');
});

it('accepts unknown fields with names of the built-in properties', async () => {
  for (const field of ['toJSON', 'constructor', 'then', 'hasOwnProperty', 'toString']) {
    const granted = await grant({ [field]: 'a string' });
    expect(granted.session_id).toBe('session-1');
    expect(asJson(granted)).toMatchObject({ session_id: 'session-1' });
  }
});

it('drops __proto__ at any depth', async ({ service, pool }) => {
  const poisoned = `{"__proto__": {"polluted": 1}, "usage": {"__proto__": {"polluted": 1}, "uptime_ms": 1},`;
  const text = JSON.stringify(session()).replace('{', poisoned);
  service.script('acquire', { status: 200, text, headers: JSON_TYPE });
  const granted = await pool.acquire();
  expect(granted).not.toHaveProperty('polluted');
  expect(granted?.usage).toStrictEqual({ uptime_ms: 1 });
  expect({}).not.toHaveProperty('polluted');
});

it.for(Object.keys(session()))(
  'rejects a session without %s, and releases it if its id is present',
  async (field) => {
    for (const value of [undefined, null, {}, [], /headless|stealth/.test(field) ? 'yes' : true]) {
      const json = session({ [field]: value });
      const { error, events, released } = await refusedGrant({ status: 200, json }, { name: 'n' });
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
  },
);

it.for(['', '..', 'a/b', 'a%2fb', 'a\r\nb'])(
  'rejects a session whose id %j could not be released later',
  // Less than the time after which the release of an orphan is given up.
  { timeout: 25_000 },
  async (id) => {
    const { error } = await refusedGrant({ status: 200, json: session({ session_id: id }) });
    expect(error).toBeInstanceOf(PoolResponseError);
    expect(error.message).toContain('session_id');
  },
);

it.for([
  [
    'the effective id of a broken session that has two',
    '"session_id": "first", "session_id": "last"',
    'last',
  ],
  ['a broken session whose id is written with escapes', String.raw`"session_id": "a\u002d1"`, 'a-1'],
])('releases %s', async ([, fields, id]) => {
  const text = `{${fields}, "headless": true}`;
  const { released } = await refusedGrant({ status: 200, text, headers: JSON_TYPE });
  expect(released).toStrictEqual([id]);
});

it.for([500, 2000, 3000, 4000, 5000, 6000, 8000, 20_000, 1_000_000])(
  'returns or releases a session with JSON %i levels deep, without an internal error',
  async (depth, { service, pool }) => {
    const deep = `{"usage": {"deep": ${'['.repeat(depth)}${']'.repeat(depth)}},`;
    const text = JSON.stringify(session()).replace('{', deep);
    service.script('acquire', { status: 200, text, headers: JSON_TYPE });
    const [handed, error] = await pool.acquire().then(
      (granted) => [granted!.session_id, undefined],
      (error: unknown) => [undefined, error],
    );
    await pool.close();
    expect([...service.released, handed].filter(Boolean)).toStrictEqual(['session-1']);
    if (error) expect(isPooledBrowserError(error)).toBe(true);
  },
);
