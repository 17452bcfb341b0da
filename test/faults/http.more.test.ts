import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, BrowserPool, PoolResponseError, PoolServiceError } from '../../src/index.js';
import { breakOff, drip, hang, reset } from '../service/support.js';
import { useCollected } from '../support/collected.js';
import { DRIVERS } from '../support/drivers.js';
import { FakeService, JWT, TOKEN, UNREACHABLE, reply, type Answer } from '../support/fake-service.js';
import { FaultBench, useQuiet } from '../support/fault-bench.js';
import { useLocalPool } from '../support/local.js';

useCollected();
useQuiet();
const used = useLocalPool();

const HTML = { 'content-type': 'text/html' };
const JSON_TYPE = { 'content-type': 'application/json' };
const PAGE = `<html>${TOKEN} ?jwt=${JWT} ${'x'.repeat(5000)}</html>`;

/** Answers after which a browser may be leased, with an unknown id. These are retried once. */
const FAILURES: [string, Answer, string][] = [
  ['a reset before the headers', reset, 'ERR_POOL_NO_RESPONSE'],
  ['a page with 502', { status: 502, text: PAGE, headers: HTML }, 'http_502'],
  ['a 500', { status: 500, json: { code: 'internal', message: `failed for ${TOKEN}` } }, 'internal'],
];

/** The same with status 200. These are not retried, because such a server does not implement the API. */
const NONSENSE: [string, Answer, string][] = [
  ['a reset in the body', breakOff('{"created_at": "2026'), 'ERR_POOL_RESPONSE'],
  [
    'JSON that is cut in the id',
    { status: 200, text: '{"session_id": "le', headers: JSON_TYPE },
    'ERR_POOL_RESPONSE',
  ],
  ['a page with 200', { status: 200, text: PAGE, headers: HTML }, 'ERR_POOL_RESPONSE'],
  ['an empty 200', { status: 200 }, 'ERR_POOL_RESPONSE'],
  ['an array', { status: 200, json: [TOKEN] }, 'ERR_POOL_RESPONSE'],
  ['a string', { status: 200, json: TOKEN }, 'ERR_POOL_RESPONSE'],
  ['a body of 5 MB', { status: 200, text: `"${'x'.repeat(5e6)}"`, headers: JSON_TYPE }, 'ERR_POOL_RESPONSE'],
  [
    'deep JSON',
    { status: 200, text: '['.repeat(1e5) + ']'.repeat(1e5), headers: JSON_TYPE },
    'ERR_POOL_RESPONSE',
  ],
  [
    'a compressed body',
    (response) =>
      void response
        .writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' })
        .end(gzipSync(`"${'x'.repeat(1e6)}"`)),
    'ERR_POOL_RESPONSE',
  ],
];

const NONE_YET: [string, Answer][] = [
  ['204', { status: 204 }],
  ...[408, 409, 429, 503, 504].map((status): [string, Answer] => [
    String(status),
    { status, json: { code: 'none_available', message: TOKEN } },
  ]),
  ...['0', 'Thu, 01 Jan 1970 00:00:00 GMT', 'nonsense', '-5'].map((after): [string, Answer] => [
    `429 with Retry-After: ${after}`,
    { status: 429, headers: { 'retry-after': after } },
  ]),
];

describe.each(DRIVERS)('$name', (driver) => {
  it('leases a browser with the next request after an unknown outcome, and reports that outcome', async () => {
    for (const [what, answer] of FAILURES) {
      await using bench = await FaultBench.start(used.local);
      bench.service.script('acquire', bench.unknowable(answer), bench.grant);
      const outcome = await bench.run(driver, () => 'value');
      expect(outcome, what).toMatchObject({
        value: 'value',
        run: { acquireAttempts: 2, unknownAcquires: 1 },
      });
      await bench.settle();
    }
  });

  it.each([
    ...FAILURES.map((failure) => [...failure, 2] as const),
    ...NONSENSE.map((nonsense) => [...nonsense, 1] as const),
  ])('does not accept %s as a session', async (_what, answer, code, requests) => {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', bench.unknowable(answer));
    const { error, run } = await bench.run(driver, () => {});
    expect(error).toMatchObject({ code });
    expect(error!.message.length).toBeLessThan(500);
    expect(bench.service.of('acquire')).toHaveLength(requests);
    expect(run).toMatchObject({ acquireAttempts: requests, unknownAcquires: requests });
    await bench.settle();
  });

  it.each<[string, (bench: FaultBench) => Answer]>([
    ['breaks off after its id', (bench) => breakOff(JSON.stringify(bench.fakeSession()).slice(0, -20))],
    ['lacks a field', (bench) => ({ status: 200, json: bench.fakeSession({ cdp_ws_url: undefined }) })],
    ['has null for a field', (bench) => ({ status: 200, json: bench.fakeSession({ headless: null }) })],
    ['has a wrong type', (bench) => ({ status: 200, json: bench.fakeSession({ timeout_seconds: '60' }) })],
    [
      'has the content type of a page',
      (bench) => ({ status: 200, text: JSON.stringify(bench.fakeSession()), headers: HTML }),
    ],
  ])('releases a session that %s, and repeats the request once', async (_what, answer) => {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', (response, request) => {
      const broken = answer(bench);
      return typeof broken === 'function' ? broken(response, request) : reply(response, broken);
    });
    const { error } = await bench.run(driver, () => {});
    expect(error).toBeInstanceOf(PoolResponseError);
    await expect.poll(() => bench.service.released).toEqual(['lease-1', 'lease-2']);
    expect(bench.service.of('acquire')).toHaveLength(2);
    await bench.settle();
  });

  it('accepts a session with unknown fields, null in optional fields, a duplicate key and __proto__', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('acquire', async (response) => {
      const json = await bench.lend();
      const deep = JSON.parse('{"a":'.repeat(200) + `"${JWT}"` + '}'.repeat(200));
      const text = JSON.stringify({ ...json, name: null, telemetry: null, unknown: deep });
      const twice = text.replace(/}$/, ',"session_id":' + JSON.stringify(json['session_id']));
      response.writeHead(200, JSON_TYPE).end(`${twice},"__proto__":{"polluted":true}}`);
    });
    const outcome = await bench.run(driver, ({ session }) => 'polluted' in session);
    expect(outcome).toMatchObject({ value: false, run: { released: 'reused' } });
    await bench.settle();
  });

  it('retries after every response that means that no browser is available yet', async () => {
    await using bench = await FaultBench.start(used.local);
    bench.service.script('acquire', ...NONE_YET.map(([, answer]) => answer), bench.grant);
    const outcome = await bench.run(driver, () => 'value');
    expect(outcome).toMatchObject({ value: 'value', run: { unknownAcquires: 0 } });
    expect(bench.service.of('acquire')).toHaveLength(NONE_YET.length + 1);
    await bench.settle();
  });

  it('waits as long as Retry-After says, at most until acquireTimeout', async () => {
    await using bench = await FaultBench.start(used.local);
    const later = (after: string): Answer => ({ status: 503, headers: { 'retry-after': after } });
    bench.service.script('acquire', later('1'), bench.grant);
    const first = await bench.run(driver, () => 'value');
    expect(first.value).toBe('value');
    const [one, two] = bench.service.of('acquire');
    expect(two!.at - one!.at).toBeGreaterThan(990);
    bench.service.script('acquire', later('1000000000'));
    const { error } = await bench.run(driver, () => {}, { acquireTimeout: 8000, within: 8000 });
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error!.cause).toMatchObject({ status: 503 });
    await bench.settle();
  });

  it.each([400, 401, 403, 404])('does not retry after a %i', async (status) => {
    await using bench = await FaultBench.start();
    const body = { code: 'no_way', message: `not for ${TOKEN}`, details: [{ code: 'd', message: JWT }] };
    bench.service.script('acquire', { status, json: body });
    const { error, run } = await bench.run(driver, () => {});
    expect(error).toBeInstanceOf(PoolServiceError);
    expect(error).toMatchObject({ status, code: 'no_way', details: [{ code: 'd' }] });
    expect(error!['hint']).toMatch(/check|permission/i);
    expect(run).toMatchObject({ acquireAttempts: 1, unknownAcquires: 0 });
    await bench.settle();
  });

  it('does not follow a redirect, and sends the token to no other server', async () => {
    await using other = await FakeService.start();
    for (const location of [`${other.baseUrl}/browser_pools/test/acquire`, '/elsewhere']) {
      await using bench = await FaultBench.start();
      bench.service.script('acquire', { status: 307, headers: { location } });
      const { error } = await bench.run(driver, () => {});
      expect(error).toMatchObject({ name: 'PoolServiceError', status: 307 });
      expect(bench.service.requests).toHaveLength(1);
      await bench.settle();
    }
    expect(other.requests).toEqual([]);
  });

  it.each<[string, Answer]>([
    ['headers that never come', hang],
    ['a slow, endless body', drip(200)],
    ['an error with a slow, endless body', drip(503)],
  ])('rejects in time after %s, and reports the unknown outcome later', async (_what, answer) => {
    await using bench = await FaultBench.start();
    bench.service.script('acquire', bench.unknowable(answer));
    // The request must be sent before the timeout.
    const limits = { acquireTimeout: 3000, within: 3000 };
    const { error, events } = await bench.run(driver, () => {}, limits);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    await expect.poll(() => bench.service.of('acquire').length).toBe(1);
    await bench.service.close();
    // A 503 says that nothing was leased, however its body ends.
    if (bench.service.of('acquire').length > 0 && _what.startsWith('an error')) bench.unknown = 0;
    await bench.settle();
    expect(events.filter(({ type }) => type === 'outcome-unknown')).toHaveLength(bench.unknown);
  });

  it('retries while the service refuses connections', async () => {
    await using bench = await FaultBench.start(used.local);
    const port = await lowPort();
    const baseUrl = `http://127.0.0.1:${port}`;
    const pool = new BrowserPool('test', { baseUrl, token: TOKEN });
    const sockets = new Set<Socket>();
    const open = createServer((socket) => {
      const onward = connect(Number(new URL(bench.service.baseUrl).port), '127.0.0.1');
      for (const end of [socket, onward]) sockets.add(end.on('error', () => {}));
      socket.pipe(onward).pipe(socket);
    });
    const run = await driver.run(pool, () => 'value', {
      connectTimeout: 90_000,
      retry: { minTimeout: 20, maxTimeout: 50 },
      onEvent: (event) => {
        if (event.type === 'waiting' && event.error && !open.listening) open.listen(port, '127.0.0.1');
      },
    });
    expect(run).toMatchObject({ value: 'value', unknownAcquires: 0, released: 'reused' });
    expect(run.acquireAttempts).toBeGreaterThan(1);
    expect(bench.service.of('acquire')).toHaveLength(1);
    await pool.close();
    open.close();
    for (const socket of sockets) socket.destroy();
    await bench.settle();
  });

  it.each([
    ['refuses connections', UNREACHABLE],
    ['has no address', 'https://pool.invalid'],
  ])('rejects in time if the service %s', async (_what, baseUrl) => {
    const pool = new BrowserPool('test', { baseUrl, token: TOKEN });
    const began = performance.now();
    const error = await driver
      .run(pool, () => {}, { acquireTimeout: 300, unreachableTimeout: 86_400_000 })
      .catch((thrown: unknown) => thrown);
    expect(performance.now() - began).toBeLessThan(300 + 20_000);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    await pool.close();
  });
});

/** A free port below those that systems assign, so that no other server gets it soon. */
async function lowPort(): Promise<number> {
  for (let port = 10_000 + (process.pid % 10_000); ; port++) {
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').catch(() => false);
    server.close();
    if (isFree) return port;
  }
}
