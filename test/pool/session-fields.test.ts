import { expect } from 'vitest';
import {
  isPooledBrowserError,
  PoolResponseError,
  type BrowserPool,
  type BrowserSession,
} from '../../src/index.js';
import { session, type FakeService } from '../support/fake-service.js';
import { asJson, it as withPool, refusedGrant, rejection } from './support.js';

type Grant = (fields: Record<string, unknown>) => Promise<BrowserSession>;

const it = withPool.extend<{ grant: Grant }>({
  /** Returns the session of a response with these fields. */
  grant: async ({ service, pool }: { service: FakeService; pool: BrowserPool }, use) => {
    await use(async (fields) => {
      service.script('acquire', { status: 200, json: session(fields) });
      return (await pool.acquire())!;
    });
  },
});

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

it('returns every field of the API unchanged, and unknown fields, including null and nested ones', async ({
  grant,
}) => {
  const unknown = { future: { deep: [1, { a: null }] }, region: 'here', nothing: null, zero: 0 };
  expect(await grant({ ...OPTIONAL, ...unknown })).toMatchObject(session({ ...OPTIONAL, ...unknown }));
});

it('treats a viewport without a number as its width as missing', async ({ grant }) => {
  expect(await grant({ viewport: { width: 'wide', height: 600 } })).not.toHaveProperty('viewport');
});

it('hides a jwt of one of its URLs in every other field, too, including earlier fields', async ({
  grant,
}) => {
  const jwt = 'opaque-and-in-two-places';
  // Numeric keys come first, whatever their place in the JSON.
  const granted = await grant({ 1: jwt, cdp_ws_url: `wss://browsers.test/cdp?jwt=${jwt}`, zone: jwt });
  expect(granted['1']).toBe(jwt);
  for (const shown of [granted, { ...granted }]) expect(JSON.stringify(shown)).not.toContain(jwt);
});

it.for(Object.keys(OPTIONAL))(
  'treats a %s that is null or has a wrong type as missing',
  async (field, { grant }) => {
    for (const value of [7, []]) expect(await grant({ [field]: value })).not.toHaveProperty(field);
    const withNull = await grant({ [field]: null });
    // The API allows null as telemetry.
    if (field === 'telemetry') expect(withNull.telemetry).toBeNull();
    else expect(withNull).not.toHaveProperty(field);
  },
);

it.for<[string, object, object]>([
  ['profile', { id: 'p1', name: null, last_used_at: 5 }, { id: 'p1' }],
  ['pool', { id: 'pool-1', name: null }, { id: 'pool-1' }],
  ['tags', { team: 'a', count: 5, none: null }, { team: 'a' }],
  ['usage', { uptime_ms: 'long' }, {}],
])('treats null and wrong-typed fields inside %s as missing', async ([field, given, expected], { grant }) => {
  expect((await grant({ [field]: given }))[field]).toStrictEqual(expected);
});

it('accepts unknown fields with names of the built-in properties', async ({ grant }) => {
  for (const field of ['toJSON', 'constructor', 'then', 'hasOwnProperty', 'toString']) {
    const granted = await grant({ [field]: 'a string' });
    expect(granted.session_id).toBe('session-1');
    expect(asJson(granted)).toMatchObject({ session_id: 'session-1' });
  }
});

it.for(['__proto__', String.raw`\u005f_proto__`, String.raw`__\u0070roto__`, String.raw`__proto\u005F_`])(
  'drops the key %s at any depth',
  async (key, { service, pool }) => {
    const poisoned = `{"${key}": {"polluted": 1}, "usage": {"${key}": {"polluted": 1}, "uptime_ms": 1},`;
    const text = JSON.stringify(session()).replace('{', poisoned);
    service.script('acquire', { status: 200, text, headers: JSON_TYPE });
    const granted = await pool.acquire();
    expect(granted).not.toHaveProperty('polluted');
    expect(Object.keys(granted!)).not.toContain('__proto__');
    expect(granted?.usage).toStrictEqual({ uptime_ms: 1 });
    expect({}).not.toHaveProperty('polluted');
  },
);

it.for(Object.keys(session()))(
  'refuses a response without a valid %s, and names the field',
  async (field, { grant }) => {
    for (const value of [undefined, null, {}, [], /headless|stealth/.test(field) ? 'yes' : true])
      expect((await rejection(grant({ [field]: value }))).message, JSON.stringify(value)).toContain(field);
  },
);

it('releases a session that lacks a field, and reports one without an id', async () => {
  const refuse = (fields: object) =>
    refusedGrant({ status: 200, json: { ...session(), ...fields } }, { name: 'n' });
  const facts = { code: 'ERR_POOL_RESPONSE', status: 200, pool: 'pool' };
  const { error, events, released } = await refuse({ stealth: 'yes' });
  expect(error).toBeInstanceOf(PoolResponseError);
  expect(error).toMatchObject({ ...facts, sessionId: 'session-1' });
  expect(released).toStrictEqual(['session-1']);
  expect(events).toMatchObject([
    { type: 'grant-orphaned', pool: 'pool', name: 'n', sessionId: 'session-1' },
    { type: 'released', pool: 'pool', sessionId: 'session-1', released: 'reused' },
  ]);
  const lost = await refuse({ session_id: null });
  expect(lost.error).toMatchObject(facts);
  expect(lost.released).toStrictEqual([]);
  expect(lost.events).toMatchObject([
    { type: 'outcome-unknown', pool: 'pool', name: 'n', error: lost.error },
  ]);
});

it.for(['', '..', 'a/b'])('refuses a session whose id %j could not be released later', async (id) => {
  const { error, released } = await refusedGrant({ status: 200, json: session({ session_id: id }) });
  expect(error).toBeInstanceOf(PoolResponseError);
  expect(error.message).toContain('session_id');
  expect(released).toStrictEqual([]);
});

it.for([500, 3000, 5000, 8000, 100_000])(
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
