import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { BrowserPool, PoolConnectionError, PoolResponseError } from '../../src/index.js';
import { FakeService, JWT, session, TOKEN, UNREACHABLE, type Answer } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { breakOff, drip, hang, it, refusedGrant, rejection, reset } from '../pool/support.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const VALID = JSON.stringify(session());
const HTML = { 'content-type': 'text/html' };

const json = (text: string): Answer => ({ status: 200, text, headers: JSON_TYPE });

function compressed(encoding: string, body: Buffer): Answer {
  return (response) => void response.writeHead(200, { ...JSON_TYPE, 'content-encoding': encoding }).end(body);
}

it.for<[string, Answer, RegExp]>([
  [
    'a page',
    { status: 200, text: `<html>${TOKEN} ?jwt=${JWT}${'x'.repeat(100_000)}`, headers: HTML },
    /content type text\/html.* Its body begins: <html>.{0,300}$/,
  ],
  ['nothing', json(''), /empty/],
  ['an array', { status: 200, json: [] }, /object/],
  ['a string', { status: 200, json: 'a browser' }, /object/],
  ['null', { status: 200, json: null }, /object/],
  ['cut JSON', json('{"created_at": "2026'), /JSON/],
  ['plain text', { status: 200, text: 'Done', headers: { 'content-type': 'text/plain' } }, /not valid JSON/],
  ['half an id', breakOff('{"session_id": "sess'), /is incomplete/],
  ['a body that breaks off before an id', breakOff('{"created_at": "2026-01'), /is incomplete/],
  ['an unknown encoding', compressed('zstd', Buffer.from('x')), /encoding zstd/],
  ['a body that is not compressed as it says', compressed('gzip', Buffer.from(VALID)), /is incomplete/],
  ['a bomb: gzip', compressed('gzip', gzipSync(Buffer.alloc(8_000_000))), /larger than 4 MiB/],
  ['a bomb: br', compressed('br', brotliCompressSync(Buffer.alloc(8_000_000))), /larger than 4 MiB/],
])('returns no data for a 200 with %s, and reports an unknown outcome', async ([, answer, message]) => {
  const { error, events, released } = await refusedGrant(answer, { tags: { a: 'b' } });
  expect(error).toBeInstanceOf(PoolResponseError);
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', status: 200, pool: 'pool' });
  expect(error.message).toMatch(message);
  expect(error.message).not.toMatch(/[^\P{Cc}\n]/u);
  expect(events).toStrictEqual([{ type: 'outcome-unknown', pool: 'pool', tags: { a: 'b' }, error }]);
  expect(released).toStrictEqual([]);
});

const packed = gzipSync('{"session_id": "session-1", "head').subarray(0, -12);

it.for<[string, Answer, string?]>([
  ['is cut in a jwt', json(VALID.slice(0, VALID.indexOf(JWT) + 10))],
  ['has no quotes around a jwt', json(VALID.replaceAll(/"(?=ws:)|(?<=6789)"/g, ''))],
  ['has trailing garbage', json(`${VALID}}`)],
  ['has the content type of a page', { status: 200, text: VALID, headers: HTML }],
  ['broke off after its id', breakOff('{"session_id": "session-1", "head')],
  ['broke off, compressed, after its id', compressed('gzip', packed)],
  ['has two ids, of which the last is effective', json('{"session_id": "first", "session_id": "b"}'), 'b'],
  ['has an id that is written with escapes', json(String.raw`{"session_id": "a\u002d1"}`), 'a-1'],
])('releases a session whose response %s', async ([, answer, sessionId = 'session-1']) => {
  const { error, released, types } = await refusedGrant(answer);
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', sessionId });
  expect(released).toStrictEqual([sessionId]);
  expect(types).toStrictEqual(['grant-orphaned', 'released']);
});

it('does not show the token that a parser quotes from broken JSON', async () => {
  for (const text of [`{"t": ${TOKEN}}`, `{"session": {} ${TOKEN}}`, TOKEN]) await refusedGrant(json(text));
});

it('reports an unknown outcome when the connection ends before the response', async () => {
  const { error, events, released } = await refusedGrant(reset);
  expect(error).toBeInstanceOf(PoolConnectionError);
  expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_NO_RESPONSE' });
  expect(error.message).toMatch(/POST \/browser_pools\/pool\/acquire/);
  expect(events).toMatchObject([{ type: 'outcome-unknown', error }]);
  expect(released).toStrictEqual([]);
});

it.for([500, 502])('reports an unknown outcome after a %i: a browser may be leased', async (status) => {
  expect((await refusedGrant({ status, text: 'oops' })).types).toStrictEqual(['outcome-unknown']);
});

it.for([302, 400, 401, 403, 404, 409, 429, 503, 504])(
  'reports no unknown outcome after a %i, and releases nothing: no browser was leased',
  async (status) => {
    const headers = { location: '/elsewhere' };
    const { error, events, released } = await refusedGrant({ status, json: session(), headers });
    expect(error).toMatchObject({ name: 'PoolServiceError', status });
    expect([events, released]).toStrictEqual([[], []]);
  },
);

it('reports a request as not sent if no connection could be opened', async () => {
  await using refused = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  for (const call of ['acquire', 'flush', 'describe'] as const) {
    const error = await rejection(refused[call]());
    expect(error).toBeInstanceOf(PoolConnectionError);
    expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE', pool: 'pool' });
    expect(error.message).toMatch(/baseUrl.*network/);
    expect((error.cause as NodeJS.ErrnoException).code).toBe('ECONNREFUSED');
    expectNoSecrets(error);
  }
  await using unknown = new BrowserPool('pool', { baseUrl: 'https://pool.invalid', token: TOKEN });
  const facts = { name: 'PoolConnectionError', code: 'ERR_POOL_UNREACHABLE' };
  expect(await rejection(unknown.flush())).toMatchObject(facts);
});

it('names pool and session after a response that is missing or no HTTP', async ({ service, pool }) => {
  const facts = { name: 'PoolConnectionError', code: 'ERR_POOL_NO_RESPONSE', pool: 'pool' };
  service.script('replays', (response) => void response.destroy());
  expect(await rejection(pool.replays('s'))).toMatchObject({ ...facts, sessionId: 's' });
  service.script('flush', (response) => void response.socket!.end('SSH-2.0-not-http\r\n'));
  const error = await rejection(pool.flush());
  expect(error).toMatchObject(facts);
  expectNoSecrets(error);
});

it('stops reading a body that is too large', async () => {
  let sent = 0;
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const { error } = await refusedGrant((response) => {
    response.writeHead(200, JSON_TYPE);
    const more = () => {
      if (response.destroyed || sent >= 200) return;
      sent++;
      response.write(chunk, () => setImmediate(more));
    };
    more();
  });
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE' });
  expect(error.message).toMatch(/larger than/);
  expect(sent).toBeLessThan(100);
});

it.for(['application/json; charset=utf-8', 'application/vnd.pool+json', 'APPLICATION/JSON'])(
  'accepts the content type %s as JSON',
  async (type, { service, pool }) => {
    service.script('acquire', { status: 200, text: VALID, headers: { 'content-type': type } });
    expect((await pool.acquire())?.session_id).toBe('session-1');
  },
);

it.for([{}, null, ['r1'], [null]])('rejects %j as a list of replays', async (json, { service, pool }) => {
  service.script('replays', { status: 200, json });
  const error = await rejection(pool.replays('session-1'));
  expect(error).toMatchObject({ name: 'PoolResponseError', status: 200, sessionId: 'session-1' });
});

it.for([[], null, { name: 'pool' }, { id: 5 }])(
  'rejects %j as a pool record',
  async (json, { service, pool }) => {
    service.script('pool', { status: 200, json });
    expect(await rejection(pool.describe())).toMatchObject({ name: 'PoolResponseError', status: 200 });
  },
);

it.for<[string, Answer]>([
  ['headers that never come', hang],
  ['a body that drips', drip(500)],
])('limits %s by the timeout', async ([, answer], { service, pool }) => {
  service.script('release', answer);
  const error = await rejection(pool.release('session-1', { timeout: 100 }));
  expect(error.name).toMatch(/PoolConnectionError|PoolServiceError/);
});

it('does not follow a redirect, whether to its own origin or to another', async ({ service, pool }) => {
  await using other = await FakeService.start();
  for (const [status, target] of [
    [302, other.baseUrl],
    [307, service.baseUrl],
  ] as const) {
    const location = `${target}/browser_pools/pool/flush?jwt=${JWT}&echo=${TOKEN}`;
    service.script('flush', { status, headers: { location } });
    const error = await rejection(pool.flush());
    expect(error).toMatchObject({ name: 'PoolServiceError', status, code: `http_${status}` });
    expect(error.message).toMatch(/[Rr]edirects are not followed/);
    expectNoSecrets(error);
  }
  expect(other.connections.made).toBe(0);
  expect(service.requests).toHaveLength(2);
});
