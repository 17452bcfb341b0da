import { afterAll, beforeAll, describe, expect, it as plainIt } from 'vitest';
import { WebSocketServer } from 'ws';
import { BrowserPool, leaseBrowser, type BrowserPoolOptions } from '../../src/index.js';
import { cdp, kernel, path, type BrowserService, type ServiceAuth } from '../../src/services.js';
import { found, type FakeService, JWT, session, TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedBrowser, settle, until } from '../support/played-browser.js';
import { useJumpingClock } from '../support/fake-clock.js';
import { expectNoSecrets } from '../support/collected.js';
import { Site } from '../support/site.js';
import { hang, it, rejection, reset } from '../pool/support.js';

/** Own requests without a wait in the service. */
const REFUSING: BrowserService = { ...kernel, waits: 'never' };

let browser: PlayedBrowser;
beforeAll(async () => (browser = await PlayedBrowser.start()));
afterAll(() => browser[Symbol.asyncDispose]());

function poolOf(service: FakeService, options: BrowserPoolOptions<object>): BrowserPool<object> {
  return new BrowserPool('pool', { ...service.options, ...options });
}

/** The service, with browsers that can be reached. */
function reachable(service: BrowserService): BrowserService {
  return { ...service, grant: (...given) => ({ ...service.grant(...given), cdpUrl: browser.url }) };
}

/** A lease that waits for a minute after each failure, unless something wakes it. */
function lease(pool: BrowserPool<object>, listen: (type: string) => void = () => {}) {
  const retry = { minTimeout: 60_000, randomize: false };
  const onEvent = ({ type }: { type: string }) => listen(type);
  const more = { connector: plainConnector, release: 'destroy', replays: 'off' } as const;
  return leaseBrowser(pool, { retry, onEvent, ...more });
}

it('releases with the request of the own service, also a browser that no caller received', async ({
  service,
}) => {
  const release: typeof kernel.release = (id, { reuse }) => ({
    method: 'POST',
    path: path`/browser_pools/${'my pool'}/release`,
    body: { session_id: id, keep: reuse },
  });
  await using pool = poolOf(service, { service: { ...kernel, release } });
  await pool.release('one', { reuse: false });
  service.script('acquire', { status: 200, json: session({ session_id: 'two', created_at: null }) });
  await rejection(pool.acquire());
  await pool.close();
  const sent = service.of('release').map((request) => [request.path, request.body]);
  expect(sent).toEqual([
    ['/browser_pools/my%20pool/release', { session_id: 'one', keep: false }],
    ['/browser_pools/my%20pool/release', { session_id: 'two', keep: true }],
  ]);
});

it('names the silence of a service that does not answer in time', async ({ service }) => {
  const jump = useJumpingClock();
  service.script('acquire', hang);
  await using pool = poolOf(service, { service: REFUSING });
  const failed = rejection(leaseBrowser(pool, { acquireTimeout: 3000, connector: plainConnector }));
  await until(() => service.of('acquire').length === 1);
  jump(3000);
  const { message } = await failed;
  expect(message).toContain('check the service: it has not answered the last request');
  expect(message).not.toContain('enlarge the pool');
  jump(3_600_000);
});

plainIt.each<[unknown, string]>([
  ['kernel', 'service must be an object'],
  [{ ...kernel, grant: undefined }, 'service has no function grant'],
  [{ ...kernel, waits: undefined }, 'service has no text waits'],
  [
    { ...kernel, release: () => ({ method: 'POST', path: 'release' }) },
    'service release returns a path without a slash at its beginning',
  ],
  ...[new Date(), new Map(), () => {}, Number.NaN, 1n, [Symbol('a')]].map((value): [unknown, string] => [
    { ...kernel, release: () => ({ method: 'POST', path: '/', body: { deep: [{ value }] } }) },
    'service release returns a request that is not JSON',
  ]),
])('refuses a service that another process could not use: %o', (service, message) => {
  const create = () => new BrowserPool('pool', { baseUrl: UNREACHABLE, token: TOKEN, service } as object);
  expect(create).toThrow(message);
  expect(create).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option: 'service' }));
});

it.for<[ServiceAuth, header: [name: string, value: string] | undefined, query: string]>([
  [{ header: 'x-api-key' }, ['x-api-key', TOKEN], ''],
  [{ header: 'authorization', scheme: 'Basic' }, ['authorization', `Basic ${btoa(TOKEN)}`], ''],
  [{ query: 'apiKey' }, undefined, `?apiKey=${TOKEN}`],
  ['none', undefined, ''],
])('sends the token as the service wants it: %j', async ([auth, header, query], { service }) => {
  await using pool = poolOf(service, { service: { ...kernel, auth } });
  service.script('flush', { status: 500, text: `for ${TOKEN} and ${btoa(TOKEN)}` });
  const error = await rejection(pool.flush());
  expectNoSecrets(error);
  expect(error.message).not.toContain(btoa(TOKEN));
  const [request] = service.requests;
  expect(request?.path).toBe(`/browser_pools/pool/flush${query}`);
  if (header) expect(request?.headers[header[0]]).toBe(header[1]);
  else expect(JSON.stringify(request?.headers)).not.toContain(TOKEN);
});

it('names what a service lacks', async ({ service }) => {
  const { replays: _replays, pool: _pool, ...least } = kernel;
  await using pool = poolOf(service, { service: { ...least, name: 'mine' } });
  for (const call of [pool.flush(), pool.describe(), pool.replays('s'), pool.startReplay('s')])
    expect(await rejection(call)).toMatchObject({ option: 'service', message: /^The service mine has no / });
  expect(service.requests).toEqual([]);
});

describe('a service that never waits', () => {
  it('refuses with 429 if no browser is available, and a release in this process wakes the first caller', async ({
    service,
  }) => {
    await using pool = poolOf(service, { service: reachable(REFUSING) });
    const first = await lease(pool);
    service.script('acquire', { status: 429 }, { status: 429 }, { status: 200, json: session() });
    // The acquire requests until each of the next grants.
    const counts: number[] = [];
    const listen = (type: string) => {
      if (type === 'acquired') counts.push(service.of('acquire').length);
    };
    const second = lease(pool, listen);
    await until(() => service.of('acquire').length === 2);
    // A 429 is no outage: the request of another caller follows at once.
    const third = lease(pool, listen);
    await until(() => service.of('acquire').length === 3);
    for (const { body } of service.of('acquire')) expect(body).not.toHaveProperty('acquire_timeout_seconds');
    await settle();
    await first.release();
    for (const waiting of [second, third]) await (await waiting).release();
    expect(counts).toEqual([4, 5]);
  });
});

it.for<[string, BrowserPoolOptions<object>]>([
  ['the option limit', { service: reachable(kernel), limit: 1 }],
  ['the limit of the service', { service: reachable({ ...kernel, limit: 1 }) }],
])('leases no more browsers at once than %s allows', async ([, options], { service }) => {
  await using pool = poolOf(service, options);
  const first = await lease(pool);
  const events: string[] = [];
  const second = lease(pool, (type) => events.push(type));
  const other = lease(poolOf(service, { service: reachable(kernel), limit: 2 }));
  await (await other).release();
  expect([events, service.of('acquire').length]).toEqual([['queued'], 2]);
  await first.release();
  await (await second).release();
  expect(service.of('acquire')).toHaveLength(3);
});

// At the same time, because the library makes a pause before each search.
describe.concurrent('after a lost response', () => {
  const types = (events: { type: string }[]) => events.map(({ type }) => type);

  it('the browser is searched for by the tag of the request, and released', async ({ service }) => {
    const pool = poolOf(service, { service: kernel });
    service.script('acquire', reset);
    service.script('search', found('lost'));
    const events: { type: string }[] = [];
    await rejection(pool.acquire({ name: 'n' }, { onEvent: (event) => events.push(event) }));
    await pool.close();
    const { tags } = service.of('acquire')[0]!.body as { tags: Record<string, string> };
    const query = `pooled-browser-lease]=${tags['pooled-browser-lease']}`;
    expect(decodeURIComponent(service.of('search')[0]!.path)).toBe(`/browsers?tags[${query}`);
    expect(types(events)).toEqual(['grant-orphaned', 'released']);
    expect(service.released).toEqual(['lost']);
  });

  it.for<[string, Parameters<FakeService['script']>[1], releases: string[]]>([
    ['finds nothing', { status: 200, json: [] }, []],
    ['fails', { status: 500 }, []],
    ['is not supported', { status: 404 }, []],
    ['finds an id that could be another path', found('../flush'), []],
    ['finds a browser that can not be released', found('x'), ['x']],
    [
      'finds the browsers of others',
      { status: 200, json: [{ session_id: 'x' }, { tags: {}, session_id: 'y' }] },
      [],
    ],
  ])('the outcome stays unknown if the search %s', async ([, answer, releases], { service }) => {
    await using pool = poolOf(service, { service: kernel });
    service.script('acquire', reset);
    service.script('release', { status: 403 });
    service.script('search', answer);
    const events: { type: string }[] = [];
    await rejection(pool.acquire({}, { onEvent: (event) => events.push(event) }));
    expect(types(events).at(-1)).toBe('outcome-unknown');
    expect(service.released).toEqual(releases);
  });
});

describe('cdp', () => {
  /** A debugging port that names this address of its browser, and its requests. */
  async function startPort(webSocketDebuggerUrl: unknown) {
    const requests: string[] = [];
    const port = await Site.open(({ url }, response) => {
      requests.push(url!);
      // As some gateways do, though the request did not ask for it.
      response.writeContinue();
      response.end(JSON.stringify({ webSocketDebuggerUrl }));
    });
    const upgrades = new WebSocketServer({ server: port.server });
    upgrades.on('connection', (_client, { url }) => requests.push(url!));
    return Object.assign(port, { requests });
  }

  const open = (pool: BrowserPool<object>) =>
    leaseBrowser(pool, { connector: plainConnector, release: 'reuse', connectAttempts: 1 });

  plainIt('finds the WebSocket of a debugging port, which shows an address of its container', async () => {
    await using port = await startPort('ws://chrome:9222/devtools/browser/abc');
    await using pool = new BrowserPool('mine', { service: cdp(`${port.url}?token=${JWT}`) });
    const { session: leased, release } = await open(pool);
    expect(port.requests).toEqual([`/json/version?token=${JWT}`, `/devtools/browser/abc?token=${JWT}`]);
    expect(leased).toEqual({ id: expect.stringMatching(/^[\w-]{36}$/) });
    expect((await release()).cleanupErrors).toEqual([]);
    expectNoSecrets(pool);
  });

  plainIt('connects to the WebSocket URL of a browser without another request', async () => {
    await using port = await startPort('');
    await using pool = new BrowserPool('mine', {
      service: cdp(`${port.url.replace('http', 'ws')}/devtools/browser/abc`),
    });
    const held = await open(pool);
    expect(port.requests).toEqual(['/devtools/browser/abc']);
    await held.release();
  });

  plainIt.each([undefined, 'nowhere'])('fails if the port names the WebSocket %s', async (address) => {
    await using port = await startPort(address);
    await using pool = new BrowserPool('mine', { service: cdp(port.url) });
    const error = await rejection(open(pool));
    expect(error).toMatchObject({ name: 'ConnectError' });
    expect(error.message).toContain(`names no WebSocket: ${port.url}/json/version has no answer`);
  });
});
