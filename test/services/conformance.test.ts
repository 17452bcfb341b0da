import { expect, it } from 'vitest';
import { LEASE_ID, serviceFaults, type ServiceSample } from '../../src/conformance.js';
import type { BrowserService } from '../../src/index.js';
import { browserless, cdp, kernel, LEASE_TAG, path, steel, webdriver } from '../../src/services.js';
import { CONTRACTS } from '../support/contract-server.js';
import { JWT, session, TOKEN } from '../support/fake-service.js';

const SESSION = { id: LEASE_ID, body: {}, createdAt: new Date('2026-01-02T03:04:05Z') };

/** Fields without which a response is no session. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  browserbase: ['id', 'connectUrl'],
  steel: ['id', 'websocketUrl'],
  hyperbrowser: ['id', 'wsEndpoint'],
  anchor: ['data', 'data.id', 'data.cdp_url'],
  'browser-use': ['id', 'cdpUrl'],
  cloudflare: ['sessionId'],
  'browserless sessions': ['id', 'connect'],
  'selenium grid': ['value', 'value.sessionId', 'value.capabilities'],
};

/** Answers to the search for the lease. */
const FOUND: Readonly<Record<string, unknown>> = {
  browserbase: [
    { id: 'other', userMetadata: {} },
    { id: LEASE_ID, userMetadata: { [LEASE_TAG]: LEASE_ID } },
  ],
  steel: { id: LEASE_ID },
  'browser-use': {
    items: [
      { id: 'other', metadata: { [LEASE_TAG]: 'another lease' } },
      { id: LEASE_ID, metadata: { [LEASE_TAG]: LEASE_ID } },
    ],
  },
};

const TABLE: readonly (readonly [string, BrowserService, ServiceSample])[] = [
  [
    'kernel',
    kernel,
    {
      response: session({
        browser_live_view_url: `https://browsers.example.com/live?jwt=${JWT}`,
        profile: { id: 'profile-1' },
        name: 'name',
        tags: { [LEASE_TAG]: LEASE_ID },
      }),
      required: ['session_id', 'cdp_ws_url', 'webdriver_ws_url', 'timeout_seconds'],
      id: 'session-1',
      secrets: [JWT],
      found: [{ session_id: 'other' }, { session_id: 'session-1', tags: { [LEASE_TAG]: LEASE_ID } }],
    },
  ],
  ['cdp', cdp('ws://127.0.0.1:9222/devtools/browser/1'), { id: LEASE_ID }],
  ['browserless', browserless({ launch: { args: ['--mute-audio'] } }), { id: LEASE_ID.slice(0, 32) }],
  [
    'chromedriver',
    webdriver({ url: 'http://127.0.0.1:9515' }),
    {
      response: {
        value: {
          sessionId: 'session-1',
          capabilities: {
            webSocketUrl: 'ws://localhost:9515/session/session-1',
            'goog:chromeOptions': { debuggerAddress: 'localhost:44957' },
          },
        },
      },
      required: ['value', 'value.sessionId', 'value.capabilities'],
      id: 'session-1',
    },
  ],
  ...CONTRACTS.map(({ name, service, session: sessionOf }): [string, BrowserService, ServiceSample] => [
    name,
    service,
    {
      response: sessionOf(SESSION, 'wss://browsers.example.com'),
      required: REQUIRED[name]!,
      id: LEASE_ID,
      secrets: [TOKEN, 'canary-'],
      ...(FOUND[name] !== undefined && { found: FOUND[name] }),
    },
  ]),
];

it.each(TABLE)('%s conforms to the interface of a service', (_name, service, sample) => {
  expect(serviceFaults(service, sample)).toEqual([]);
});

const LEASE = { pool: 'p', id: 'one', keepAlive: false, record: false };
const AT = { baseUrl: new URL('https://service.example.com'), token: TOKEN };
const [, , SAMPLE] = TABLE[0]!;
const SHOWN = 'a-secret-that-nobody-hides';

it.each<[Partial<Record<keyof BrowserService, unknown>>, string]>([
  [{ grant: undefined }, 'service has no function grant'],
  [{ grant: () => ({ id: 'x', session: {} }) }, 'grant reads the id x, not session-1.'],
  [{ grant: () => ({ id: 'x', session: {} }) }, 'grant accepts the response null.'],
  [
    { grant: (json: { session_id: string }) => ({ id: json.session_id, session: json, cdpUrl: 'wss://a' }) },
    'with a message that does not end a sentence',
  ],
  [{ secretParameters: [], grant: showSecret }, 'A session shows a secret'],
  [{ secretParameters: [], grant: hideSecret }, 'The error of a broken response shows a secret'],
  [{ release: (id: string) => ({ method: 'POST', path: `/sessions/${id}` }) }, 'an id that is not encoded'],
  [{ release: () => ({ method: 'POST', path: '/release' }) }, 'does not contain the id of the session'],
  [{ release: (id: string) => ({ method: 'GET', path: path`/kill/${id}` }) }, 'A release has the method GET'],
  [{ release: () => undefined }, 'needs a release request if it needs an acquire request'],
  [{ find: () => ({ method: 'GET', path: '/browsers', list: [] }) }, 'nor says where an entry has it'],
  [
    { find: () => ({ method: 'GET', path: path`/browsers?q=${LEASE_ID}`, list: [] }) },
    'find finds ["other","session-1"], not only session-1.',
  ],
  [{ sessions: { list: () => undefined, read: () => [] } }, 'sessions.read accepts null.'],
])('a fault of an adapter is named: %o', (change, fault) => {
  const sample = { ...SAMPLE, response: { ...(SAMPLE.response as object), key: SHOWN }, secrets: [SHOWN] };
  const faults = serviceFaults({ ...kernel, ...change } as BrowserService, sample);
  expect(faults.join('\n')).toContain(fault);
});

function showSecret(json: unknown) {
  const { session_id: id, cdp_ws_url: cdpUrl } = json as { session_id: string; cdp_ws_url: string };
  return { id, session: { id, key: SHOWN }, cdpUrl };
}

/** As a service whose secret has a name that only its sessions show. */
function hideSecret(json: unknown) {
  return { ...kernel.grant(json, LEASE, AT), secretFields: ['key'] };
}

it('steel gets its key in the URL of the WebSocket only', () => {
  const grant = steel().grant({ id: 'one', websocketUrl: 'wss://connect.steel.dev' }, LEASE, AT);
  expect(grant.cdpUrl).toBe(`wss://connect.steel.dev/?apiKey=${TOKEN}&sessionId=one`);
  expect(JSON.stringify(grant.session)).not.toContain(TOKEN);
});

it.each(['connect', 'browserWSEndpoint'])('browserless reads the address of a session as %s', (field) => {
  const service = browserless({ session: { ttl: 1 } });
  const grant = service.grant(
    { id: 'one', [field]: 'wss://sfo.example.com/chromium?session=one' },
    LEASE,
    AT,
  );
  expect(grant.cdpUrl).toBe(`wss://sfo.example.com/chromium?session=one&token=${TOKEN}`);
  expect(() => service.grant({ id: 'one', [field]: 'nowhere' }, LEASE, AT)).toThrow(
    `a field ${field} that is not a URL`,
  );
});

const GRID = { 'se:cdp': 'ws://172.17.0.2:4444/x', webSocketUrl: 'ws://172.17.0.2:4444/x' };
const DRIVER = {
  'goog:chromeOptions': { debuggerAddress: 'localhost:4499' },
  webSocketUrl: 'ws://localhost:9515/session/one',
};
it.each<[string, string, object, object]>([
  [
    'Selenium Grid below a path',
    'https://grid.test/wd/hub/',
    { ...DRIVER, ...GRID },
    {
      cdpUrl: 'wss://grid.test/wd/hub/session/one/se/cdp',
      bidiUrl: 'wss://grid.test/wd/hub/session/one/se/bidi',
    },
  ],
  [
    'chromedriver',
    'http://127.0.0.1:9515',
    DRIVER,
    { cdpUrl: 'http://localhost:4499', bidiUrl: 'ws://127.0.0.1:9515/session/one' },
  ],
  ['chromedriver elsewhere', 'https://far.test', DRIVER, { bidiUrl: 'wss://far.test/session/one' }],
])('webdriver reads the addresses of a session of %s', (_what, url, capabilities, addresses) => {
  const at = { baseUrl: new URL(url), token: undefined };
  const { cdpUrl, bidiUrl } = webdriver().grant({ value: { sessionId: 'one', capabilities } }, LEASE, at);
  expect({ cdpUrl, bidiUrl }).toEqual({ cdpUrl: undefined, ...addresses });
});
