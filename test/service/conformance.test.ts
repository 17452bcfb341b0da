import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { BrowserPool, type BrowserService } from '../../src/index.js';
import { cdp, kernel, type LeaseRequest, type ServiceRequest } from '../../src/services.js';
import { checkService } from '../../src/service/browser-service.js';
import { completeRequest } from '../../src/service/complete-request.js';
import { ticketOf } from '../../src/service/grant.js';
import { sealSession } from '../../src/service/session.js';
import { JWT, session, TOKEN } from '../support/fake-service.js';
import { asJson, expectNoSecret } from './support.js';

/** A value that no part of a URL may contain as it is. */
const HOSTILE = 'a/b ?x=1&y#z%é"\\';
const LEASE: LeaseRequest = {
  pool: HOSTILE,
  id: 'lease-1',
  name: 'name',
  tags: { 'any key': '' },
  startUrl: 'https://example.com/?q=1',
  wait: 7,
  keepAlive: true,
  record: true,
};
const AT = { baseUrl: new URL('https://pool.example.com/v1/'), token: TOKEN };

interface Sample {
  service: BrowserService;
  /** A response that leases a browser; undefined if the connection itself is the lease. */
  response: Record<string, unknown> | undefined;
  /** Fields without which it is not a session. */
  required: readonly string[];
  id: string;
}

const SAMPLES: readonly Sample[] = [
  {
    service: kernel,
    response: session({
      browser_live_view_url: `https://browsers.example.com/live?jwt=${JWT}`,
      profile: { id: 'profile-1' },
      name: 'name',
      tags: { 'pooled-browser-lease': 'lease-1' },
    }),
    required: ['session_id', 'cdp_ws_url', 'webdriver_ws_url', 'timeout_seconds'],
    id: 'session-1',
  },
  {
    service: cdp('ws://127.0.0.1:9222/devtools/browser/1'),
    response: undefined,
    required: [],
    id: 'lease-1',
  },
];

/** All requests of a service, by the function that builds them. */
function requestsOf({ acquire, release, owner, find, replays, pool }: BrowserService) {
  const all: Record<string, ServiceRequest | null | undefined> = {
    acquire: acquire(LEASE),
    reuse: release(HOSTILE, { pool: HOSTILE, reuse: true }),
    destroy: release(HOSTILE, { pool: HOSTILE, reuse: false }),
    owner: owner?.(HOSTILE, LEASE),
    find: find?.(LEASE),
    list: replays?.list(HOSTILE),
    start: replays?.start?.(HOSTILE, { frameRate: 5, maxSeconds: 60 }),
    stop: replays?.stop?.(HOSTILE, HOSTILE),
    video: replays?.video?.(HOSTILE, HOSTILE),
    describe: pool?.describe?.(HOSTILE),
    flush: pool?.flush?.(HOSTILE),
  };
  return Object.entries(all).filter((entry): entry is [string, ServiceRequest] => Boolean(entry[1]));
}

function poolOf(service: BrowserService): BrowserPool<object> {
  return new BrowserPool('pool', { service, baseUrl: 'https://pool.example.com', token: TOKEN });
}

it.for(SAMPLES)('$service.name: requests are JSON, and ids are one segment of the path', ({ service }) => {
  expect(() => checkService(service)).not.toThrow();
  for (const [name, request] of requestsOf(service)) {
    expect(asJson(request), name).toEqual(request);
    const { url } = completeRequest(request, AT.baseUrl, service.auth);
    const { pathname, hash, origin } = new URL(url);
    expect([origin, hash], name).toEqual(['https://pool.example.com', '']);
    expect(pathname, name).toMatch(/^\/v1\/[^/]/);
    expect(decodeURIComponent(pathname).includes(HOSTILE), name).toBe(request.path.includes('a%2Fb'));
    expect(url, name).not.toContain('a/b');
    expect(JSON.stringify(request), name).not.toContain(TOKEN);
  }
});

it.for(SAMPLES)('$service.name: reads its response, and hides the secrets in it', (sample) => {
  const { service, response, id } = sample;
  // Its constructor notes the parameters that are secrets.
  poolOf(service);
  const grant = service.grant(response, LEASE, AT);
  expect(grant.id).toBe(id);
  expect(grant.cdpUrl ?? grant.bidiUrl).toMatch(/^(wss?|https?):/);
  const sealed = sealSession(grant);
  for (const [field, value] of Object.entries(response ?? {}))
    expect((sealed as Record<string, unknown>)[field], field).toEqual(value);
  for (const value of [sealed, { nested: [sealed] }, new Error('mine', { cause: sealed }), { ...sealed }])
    expectNoSecret(value);
  expect(inspect(sealed)).toContain(id);
});

it.for(SAMPLES.flatMap((sample) => sample.required.map((field) => ({ ...sample, field }))))(
  '$service.name: refuses a response whose $field is missing or has another type',
  ({ service, response, field }) => {
    for (const value of [undefined, null, [], {}]) {
      const read = () => service.grant({ ...response, [field]: value }, LEASE, AT);
      expect(read).toThrow(/^(lacks|has|is) /);
      try {
        read();
      } catch (error) {
        expectNoSecret(error);
      }
    }
  },
);

it.for(SAMPLES.filter(({ response }) => response))(
  '$service.name: refuses a response that is not an object',
  ({ service }) => {
    for (const json of [undefined, null, 'text', 7, [], [{}], true])
      expect(() => service.grant(json, LEASE, AT)).toThrow(/^(lacks|has|is) /);
  },
);

it.for(SAMPLES)('$service.name: another process can release, recognize and find a lease', (sample) => {
  const { service, id } = sample;
  const pool = poolOf(service);
  const ticket = ticketOf(id, { pool, lease: LEASE }, true);
  // The end of the connection releases such a browser.
  expect(ticket === undefined).toBe(service.acquire(LEASE) === undefined);
  if (ticket) {
    const { owner, reuse, destroy } = ticket;
    expect(asJson(ticket)).toEqual(ticket);
    for (const { method, url, body } of [reuse, destroy]) {
      expect(method).not.toBe('GET');
      expect(url + JSON.stringify(body)).toContain(id);
    }
    if (service.owner) expect(owner).toMatchObject({ method: 'GET', isShown: true, is: LEASE.id });
    const found = service.find?.(LEASE);
    if (found)
      expect(found).toMatchObject({ method: 'GET', path: expect.stringContaining(LEASE.id) as string });
  }
});
