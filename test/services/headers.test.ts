import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { expect } from 'vitest';
import { WebSocketServer } from 'ws';
import { attachBrowser, BrowserPool, leaseBrowser, withPooledBrowser } from '../../src/index.js';
import { kernel, objectAt, path, socketUrl, type BrowserService } from '../../src/services.js';
import { expectNoSecrets } from '../support/collected.js';
import { session } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { Site } from '../support/site.js';
import { it, rejection } from '../pool/support.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const USER_AGENT = `pooled-browser/${version}`;
const ACCOUNT = 'canary-account-0123456789';
const KEY = 'canary-browser-key-0123456789';

interface Rental {
  readonly id: string;
  readonly browserKey: string;
}

/** A service with headers of its own, whose WebSockets need a header of the browser, too. */
const RENTALS: BrowserService<Rental> = {
  name: 'rentals',
  auth: 'none',
  headers: { 'x-account': ACCOUNT },
  secretParameters: ['browserKey'],
  idField: 'id',
  waits: 'never',
  acquire: () => ({ method: 'POST', path: '/rentals' }),
  grant: (json, _lease, at) => {
    const rental = objectAt<Rental>(json, [], ['id', 'browserKey']);
    return {
      id: rental.id,
      session: rental,
      cdpUrl: socketUrl(at, '/first'),
      headers: { 'x-browser-key': rental.browserKey },
      reconnect: { cdpUrl: socketUrl(at, '/again') },
    };
  },
  release: (id) => ({ method: 'DELETE', path: path`/rentals/${id}` }),
};

async function startRentals(browserKey = KEY) {
  const requests: (readonly [string, IncomingHttpHeaders])[] = [];
  const upgrades: (readonly [string, IncomingHttpHeaders])[] = [];
  const site = await Site.open(({ method, url, headers }, response) => {
    requests.push([`${method} ${url}`, headers]);
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'one', browserKey }));
  });
  const server = new WebSocketServer({ server: site.server });
  server.on('connection', (_client, { url = '', headers }) => upgrades.push([url, headers]));
  return {
    requests,
    upgrades,
    baseUrl: site.url,
    drop: () => server.clients.forEach((client) => client.terminate()),
    [Symbol.asyncDispose]: async () => {
      for (const client of server.clients) client.terminate();
      await site[Symbol.asyncDispose]();
    },
  };
}

it('sends the headers of the service and of the browser with each request and each WebSocket', async () => {
  await using server = await startRentals();
  const { baseUrl, requests, upgrades } = server;
  await using pool = new BrowserPool('pool', { service: RENTALS, baseUrl });
  const events: unknown[] = [];
  const options = { connector: plainConnector, onEvent: (event: object) => void events.push(event) };
  const lease = await leaseBrowser(pool, { ...options, reconnect: 'eager' });
  await expect.poll(() => upgrades).toHaveLength(1);
  server.drop();
  await expect.poll(() => upgrades).toHaveLength(2);
  await lease.use(() => {});
  const detached = await lease.detach();
  const attached = await attachBrowser(detached, { pool, connector: plainConnector });
  expect(attached.session.browserKey).toBe(KEY);
  expectNoSecrets(pool, lease.session, attached.session, events);
  await attached.release();
  const own = { 'x-account': ACCOUNT, 'user-agent': USER_AGENT };
  expect(requests).toMatchObject([
    ['POST /rentals', own],
    ['DELETE /rentals/one', own],
  ]);
  for (const [, headers] of requests) expect(headers).not.toHaveProperty('x-browser-key');
  const both = { ...own, 'x-browser-key': KEY };
  expect(upgrades).toMatchObject([
    ['/first', both],
    ['/again', both],
    ['/again', both],
  ]);
});

it('sends the headers of the service to its own address only', async () => {
  await using server = await startRentals();
  await using browser = await PlayedBrowser.start();
  const seen: IncomingHttpHeaders[] = [];
  browser.onUpgrade = (headers) => void seen.push(headers);
  const grant: typeof RENTALS.grant = (...given) => ({ ...RENTALS.grant(...given), cdpUrl: browser.url });
  const service = { ...RENTALS, grant };
  await using pool = new BrowserPool('pool', { service, baseUrl: server.baseUrl });
  await withPooledBrowser(pool, () => {}, { connector: plainConnector });
  expect(seen).toMatchObject([{ 'x-browser-key': KEY, 'user-agent': USER_AGENT }]);
  expect(seen[0]).not.toHaveProperty('x-account');
});

it('releases a browser whose headers can not be sent, and shows none of them', async () => {
  await using server = await startRentals('canary-other-key-0123456789\r\nx-forged: 1');
  await using pool = new BrowserPool('pool', { service: RENTALS, baseUrl: server.baseUrl });
  const error = await rejection(leaseBrowser(pool, { connector: plainConnector, retry: { retries: 0 } }));
  expect(error.message).toContain('has a header "x-browser-key" that can\'t be sent');
  expectNoSecrets(error);
  await expect.poll(() => server.requests.map(([request]) => request)).toContain('DELETE /rentals/one');
});

it.for([
  [{ 'x-account': 'two\r\nlines' }, 'a header "x-account"'],
  [{ host: 'other.example' }, 'a header "host"'],
  [{ 'sec-websocket-key': 'a' }, 'a header "sec-websocket-key"'],
  [{ 'no name': 'a' }, 'a header "no name"'],
  [{ 'x-account': undefined }, 'a header "x-account"'],
  ['x-account: a', 'headers that are not an object'],
])('refuses headers of a service that can not be sent: %o', ([headers, fault]) => {
  const service = { ...RENTALS, headers } as typeof RENTALS;
  const create = () => new BrowserPool('pool', { service, baseUrl: 'http://localhost:1' });
  expect(create).toThrow(`service has ${String(fault)}`);
});

it('names the project, and asks for telemetry, with kernel(options)', async ({ service }) => {
  const projectId = 'canary-project-1';
  const poolWith = (own: BrowserService) =>
    new BrowserPool('pool', { ...service.options, service: { ...own, find: undefined } as never });
  const telemetry = { browser: { console: { enabled: true } } };
  const pools = [kernel({ projectId }), kernel({ telemetry: true }), kernel({ telemetry }), kernel(), kernel];
  for (const own of pools) {
    await using pool = poolWith(own);
    service.script('acquire', { status: 200, json: session() });
    await withPooledBrowser(pool, () => {}, {
      connector: { ...plainConnector, connect: () => Promise.reject(new Error('no browser')) },
      connectAttempts: 1,
    }).catch(() => {});
  }
  expect(service.of('acquire').map(({ headers }) => headers['x-kernel-project-id'])).toEqual([
    projectId,
    ...Array(4).fill(undefined),
  ]);
  expect(service.of('release')[0]!.headers['x-kernel-project-id']).toBe(projectId);
  expect(service.of('acquire').map(({ body }) => body?.['telemetry'])).toEqual([
    undefined,
    { enabled: true },
    telemetry,
    undefined,
    undefined,
  ]);
});
