import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { PoolConnectionError, PoolResponseError } from '../../src/shared/service-errors.js';
import { BrowserPool } from '../../src/service/browser-pool.js';
import type { PoolEvent } from '../../src/service/events.js';
import { FakeService, JWT, session, TOKEN, UNREACHABLE, type Answer } from '../support/fake-service.js';
import { breakOff, drip, expectNoSecret, hang, rejection, reset } from './support.js';

/** Returns the outcome of an acquire request after all releases. */
async function acquireFrom(answer: Answer) {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('acquire', answer);
  const events: PoolEvent[] = [];
  const error = await rejection<PoolResponseError>(
    pool.acquire({ tags: { a: 'b' } }, { onEvent: (event) => events.push(event) }),
  );
  await pool.close();
  expectNoSecret(error);
  expectNoSecret(events);
  return { error, events, released: service.released };
}

const JSON_TYPE = { 'content-type': 'application/json' };

it.each<[string, Answer, RegExp]>([
  ['a page', { status: 200, text: '<html>Log in</html>', headers: { 'content-type': 'text/html' } }, /html/],
  ['nothing', { status: 200, text: '', headers: JSON_TYPE }, /empty/],
  ['an array', { status: 200, json: [] }, /object/],
  ['a string', { status: 200, json: 'a browser' }, /object/],
  ['null', { status: 200, json: null }, /object/],
  ['cut JSON', { status: 200, text: '{"created_at": "2026', headers: JSON_TYPE }, /JSON/],
  ['a wrong type', { status: 200, text: '{}', headers: { 'content-type': 'text/plain' } }, /text\/plain/],
])('returns no data for a 200 with %s, and reports an unknown outcome', async (_what, answer, message) => {
  const { error, events, released } = await acquireFrom(answer);
  expect(error).toBeInstanceOf(PoolResponseError);
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', status: 200, pool: 'pool' });
  expect(error.message).toMatch(message);
  expect(events).toStrictEqual([{ type: 'outcome-unknown', pool: 'pool', tags: { a: 'b' }, error }]);
  expect(released).toStrictEqual([]);
});

it('shows a short, redacted beginning of an HTML response', async () => {
  const text = `<html>${TOKEN} ?jwt=${JWT}${'x'.repeat(100_000)}</html>`;
  const { error } = await acquireFrom({ status: 200, text, headers: { 'content-type': 'text/html' } });
  expect(error.message).toContain('Its body begins: <html>');
  expect(error.message.length).toBeLessThan(500);
});

it.each([
  ['is cut in a jwt', (text: string) => text.slice(0, text.indexOf(JWT) + 10)],
  ['has no quotes around a jwt', (text: string) => text.replaceAll(/"(?=ws:)|(?<=6789)"/g, '')],
  ['has trailing garbage', (text: string) => `${text}}`],
])('releases a session whose JSON %s', async (_how, spoil) => {
  const text = spoil(JSON.stringify(session()));
  const { error, released, events } = await acquireFrom({ status: 200, text, headers: JSON_TYPE });
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', sessionId: 'session-1' });
  expect(released).toStrictEqual(['session-1']);
  expect(events.map(({ type }) => type)).toStrictEqual(['grant-orphaned', 'released']);
});

it('does not show the token that a parser quotes from broken JSON', async () => {
  for (const text of [`{"t": ${TOKEN}}`, `{"session": {} ${TOKEN}}`, TOKEN]) {
    await acquireFrom({ status: 200, text, headers: JSON_TYPE });
  }
});

it('releases a session in a response with a wrong content type', async () => {
  const text = JSON.stringify(session());
  const { released } = await acquireFrom({ status: 200, text, headers: { 'content-type': 'text/html' } });
  expect(released).toStrictEqual(['session-1']);
});

it('releases a session whose response broke off after its id', async () => {
  const { error, released, events } = await acquireFrom(breakOff('{"session_id": "session-9", "head'));
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE', sessionId: 'session-9' });
  expect(error.message).toMatch(/is incomplete/);
  expect(error.cause).toBeInstanceOf(Error);
  expect(released).toStrictEqual(['session-9']);
  expect(events.map(({ type }) => type)).toStrictEqual(['grant-orphaned', 'released']);
});

it('does not use the beginning of an id as an id', async () => {
  const { released, events } = await acquireFrom(breakOff('{"session_id": "sess'));
  expect(released).toStrictEqual([]);
  expect(events.map(({ type }) => type)).toStrictEqual(['outcome-unknown']);
});

it('reports an unknown outcome when the response broke off before an id', async () => {
  const { error, released, events } = await acquireFrom(breakOff('{"created_at": "2026-01'));
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE' });
  expect(released).toStrictEqual([]);
  expect(events).toMatchObject([{ type: 'outcome-unknown', error }]);
});

it('reports an unknown outcome when the connection ends before the response', async () => {
  const { error, events, released } = await acquireFrom(reset);
  expect(error).toBeInstanceOf(PoolConnectionError);
  expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_NO_RESPONSE' });
  expect(error.message).toMatch(/POST \/browser_pools\/pool\/acquire/);
  expect(events).toMatchObject([{ type: 'outcome-unknown', error }]);
  expect(released).toStrictEqual([]);
});

it.each([500, 502])(
  'reports an unknown outcome after a %i: a browser may have been granted',
  async (status) => {
    const { events } = await acquireFrom({ status, text: 'oops' });
    expect(events.map(({ type }) => type)).toStrictEqual(['outcome-unknown']);
  },
);

it.each([400, 401, 403, 404, 409, 429, 503, 504])(
  'reports no unknown outcome after a %i: no browser was leased',
  async (status) => {
    const { events } = await acquireFrom({ status, text: 'no' });
    expect(events).toStrictEqual([]);
  },
);

it.each(['acquire', 'flush'] as const)('reports a refused %s as not sent', async (call) => {
  const pool = new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN });
  const error = await rejection(pool[call]());
  expect(error).toBeInstanceOf(PoolConnectionError);
  expect(error).toMatchObject({ code: 'ERR_POOL_UNREACHABLE' });
  expect(error.message).toMatch(/baseUrl.*network/);
  expect((error.cause as NodeJS.ErrnoException).code).toBe('ECONNREFUSED');
  expectNoSecret(error);
  await pool.close();
});

it('reports a request to an unknown host as not sent', async () => {
  const pool = new BrowserPool('pool', { baseUrl: 'https://pool.invalid', token: TOKEN });
  const error = await rejection(pool.flush());
  expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_UNREACHABLE' });
  await pool.close();
});

it('reports a response that is not HTTP as a connection error', async () => {
  const server = createServer((socket) => socket.resume().end('SSH-2.0-not-http\r\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new BrowserPool('pool', { baseUrl, token: TOKEN });
  const error = await rejection(pool.flush());
  expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_NO_RESPONSE' });
  expectNoSecret(error);
  await pool.close();
  await once(server.close(), 'close');
});

it('stops reading a body that is too large', async () => {
  let sent = 0;
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const { error } = await acquireFrom((response) => {
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

it('does not decompress: a small compressed body can expand without a limit', async () => {
  const packed = gzipSync(JSON.stringify(session()));
  const { error, events } = await acquireFrom((response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' });
    response.end(packed);
  });
  expect(error).toMatchObject({ code: 'ERR_POOL_RESPONSE' });
  expect(error.message).toMatch(/encoding gzip/);
  expect(events.map(({ type }) => type)).toStrictEqual(['outcome-unknown']);
  expect(error.message).not.toMatch(/[^\P{Cc}\n]/u);
});

it.each(['application/json; charset=utf-8', 'application/vnd.pool+json', 'APPLICATION/JSON'])(
  'accepts the content type %s as JSON',
  async (type) => {
    await using service = await FakeService.start();
    await using pool = new BrowserPool('pool', service.options);
    const text = JSON.stringify(session());
    service.script('acquire', { status: 200, text, headers: { 'content-type': type } });
    expect((await pool.acquire())?.session_id).toBe('session-1');
  },
);

it.each<[string, unknown]>([
  ['an object', {}],
  ['null', null],
  ['a list of strings', ['r1']],
  ['a list with null', [null]],
])('rejects %s as a list of replays', async (_what, json) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('replays', { status: 200, json });
  const error = await rejection(pool.replays('session-1'));
  expect(error).toMatchObject({ name: 'PoolResponseError', status: 200, sessionId: 'session-1' });
});

it.each<[string, unknown]>([
  ['a list', []],
  ['null', null],
  ['an object without an id', { name: 'pool' }],
  ['an id that is not a string', { id: 5 }],
])('rejects %s as a pool record', async (_what, json) => {
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  service.script('pool', { status: 200, json });
  expect(await rejection(pool.describe())).toMatchObject({ name: 'PoolResponseError', status: 200 });
});

it.each<[string, Answer]>([
  ['headers that never come', hang],
  ['a body that drips', drip(500)],
])('limits %s by the timeout', async (_what, answer) => {
  await using service = await FakeService.start();
  const pool = new BrowserPool('pool', service.options);
  service.script('release', answer);
  const started = performance.now();
  const error = await rejection(pool.release('session-1', { timeout: 200 }));
  expect(performance.now() - started).toBeGreaterThan(150);
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(error.name).toMatch(/PoolConnectionError|PoolServiceError/);
  await pool.close();
});

it('does not follow a redirect, whether to its own origin or to another', async () => {
  await using other = await FakeService.start();
  await using service = await FakeService.start();
  await using pool = new BrowserPool('pool', service.options);
  for (const status of [301, 302, 303, 307, 308]) {
    for (const target of [other.baseUrl, service.baseUrl]) {
      const location = `${target}/browser_pools/pool/flush?jwt=${JWT}&echo=${TOKEN}`;
      service.script('flush', { status, headers: { location } });
      const error = await rejection(pool.flush());
      expect(error).toMatchObject({ name: 'PoolServiceError', status, code: `http_${status}` });
      expect(error.message).toMatch(/[Rr]edirects are not followed/);
      expectNoSecret(error);
    }
  }
  expect(other.connections.made).toBe(0);
  expect(service.requests).toHaveLength(10);
});

it('does not count a redirect of acquire as a lease', async () => {
  const { error, released } = await acquireFrom({
    status: 302,
    json: session(),
    headers: { location: '/x' },
  });
  expect(error).toMatchObject({ name: 'PoolServiceError', status: 302 });
  expect(released).toStrictEqual([]);
});
