import { expect, it } from 'vitest';
import { LEASE_ID, serviceFaults, type ServiceSample } from '../../src/conformance.js';
import type { BrowserService } from '../../src/index.js';
import {
  anchor,
  browserbase,
  browserless,
  browserUse,
  cdp,
  hyperbrowser,
  kernel,
  LEASE_TAG,
  path,
  steel,
  webdriver,
  type LeaseRequest,
} from '../../src/services.js';
import { CONTRACTS, contractOf } from '../support/contract-server.js';
import { JWT, session, TOKEN } from '../support/fake-service.js';

const RECORDED = { enableVideoWebRecording: true };
const SESSION = { id: LEASE_ID, body: {}, createdAt: new Date('2026-01-02T03:04:05Z') };

/** Fields without which a response is no session. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  'kernel:browsers': ['session_id', 'cdp_ws_url', 'webdriver_ws_url', 'timeout_seconds'],
  browserbase: ['id', 'connectUrl'],
  steel: ['id', 'websocketUrl'],
  hyperbrowser: ['id', 'wsEndpoint'],
  anchor: ['data', 'data.id', 'data.cdp_url'],
  'browser-use': ['id', 'cdpUrl'],
  cloudflare: ['sessionId'],
  'browserless sessions': ['id', 'connect'],
  'selenium grid': ['value', 'value.sessionId', 'value.capabilities'],
};

/** What a contract answers to a read request, with our session and, in lists, another one. */
function read(name: string, route: string, { earlier = 1, ...body }: Record<string, unknown> = {}): unknown {
  const session = { ...SESSION, body, endedAt: new Date('2026-01-02T03:05:05Z') };
  const own = { ...SESSION, body: { userMetadata: OURS, metadata: OURS, tags: OURS } };
  return contractOf(name).reads[route]!({
    session,
    all: [own, { ...SESSION, id: 'other' }],
    query: new URLSearchParams('pageNumber=1'),
    address: 'wss://browsers.example.com',
    earlier: earlier as number,
    videoUrl: 'https://files.example.com/video.mp4',
    requests: [],
  });
}
const OURS = { [LEASE_TAG]: LEASE_ID };

/** Further answers of the contracts: to the search for the lease, to lists, and what each service refuses in its own form. */
const ANSWERS: Readonly<Record<string, Partial<ServiceSample>>> = {
  'kernel:browsers': {
    found: read('kernel:browsers', 'GET /browsers'),
    sessions: read('kernel:browsers', 'GET /browsers'),
    recordings: {
      response: [{ replay_id: 'r', started_at: '2026-01-02T03:04:05Z', replay_view_url: 'https://x.test/r' }],
      ids: ['r'],
    },
    mostTags: 50,
  },
  browserbase: {
    found: read('browserbase', 'GET /v1/sessions'),
    sessions: read('browserbase', 'GET /v1/sessions'),
    recordings: { response: read('browserbase', 'GET /v1/sessions/:id/replays'), ids: ['page-1'] },
    video: {
      replayId: 'page-1',
      ready: read('browserbase', 'GET /v1/sessions/:id/recording/downloads'),
      pending: read('browserbase', 'GET /v1/sessions/:id/recording/downloads', { earlier: 0 }),
    },
    errors: [{ status: 400, body: { error: 'Bad Request', message: 'timeout' }, says: '400: timeout' }],
  },
  steel: {
    found: read('steel', 'GET /v1/sessions/:id'),
    recordings: { response: read('steel', 'GET /v1/sessions/:id'), ids: [LEASE_ID] },
  },
  hyperbrowser: {
    recordings: { response: read('hyperbrowser', 'GET /api/session/:id'), ids: [LEASE_ID] },
    video: {
      replayId: LEASE_ID,
      ready: read('hyperbrowser', 'GET /api/session/:id/video-recording-url', RECORDED),
      pending: read('hyperbrowser', 'GET /api/session/:id/video-recording-url', { ...RECORDED, earlier: 0 }),
    },
    errors: [{ status: 401, body: { error: 'Unauthorized' }, says: 'Unauthorized' }],
  },
  anchor: {
    recordings: { response: read('anchor', 'GET /v1/sessions/:id/recordings'), ids: ['recording-1'] },
    video: {
      replayId: 'recording-1',
      ready: read('anchor', 'GET /v1/sessions/:id/recordings'),
      pending: { data: { items: [] } },
    },
    errors: [
      { status: 400, body: { error: { code: 'NO', message: 'no proxy' } }, says: 'no proxy', code: 'NO' },
    ],
  },
  'browser-use': {
    found: read('browser-use', 'GET /browsers'),
    sessions: read('browser-use', 'GET /browsers'),
    recordings: {
      response: read('browser-use', 'GET /browsers/:id', { enableRecording: true }),
      ids: [LEASE_ID],
    },
    video: {
      replayId: LEASE_ID,
      ready: read('browser-use', 'GET /browsers/:id', { enableRecording: true }),
      pending: { id: LEASE_ID, recordingUrl: null },
    },
    errors: [{ status: 402, body: { detail: 'Insufficient credits' }, says: 'Insufficient credits' }],
    mostTags: 10,
  },
  'selenium grid': {
    errors: [
      {
        status: 500,
        body: { value: { error: 'session not created', message: 'no node' } },
        says: 'no node',
        code: 'session not created',
      },
    ],
  },
};

const KERNEL: ServiceSample = {
  response: session({
    browser_live_view_url: `https://browsers.example.com/live?jwt=${JWT}`,
    profile: { id: 'profile-1' },
    name: 'name',
    tags: { [LEASE_TAG]: LEASE_ID },
  }),
  required: ['session_id', 'cdp_ws_url', 'webdriver_ws_url', 'timeout_seconds'],
  id: 'session-1',
  secrets: [JWT],
  found: [{ session_id: 'other' }, session({ tags: { [LEASE_TAG]: LEASE_ID } })],
  recordings: {
    response: [{ replay_id: 'r', started_at: '2026-01-02T03:04:05Z', replay_view_url: 'https://x.test/r' }],
    ids: ['r'],
  },
  sessions: [{ session_id: 'other' }, { session_id: 'session-1', tags: { [LEASE_TAG]: LEASE_ID } }],
  errors: [
    { status: 400, body: { code: 'invalid_input', message: 'no' }, says: 'no', code: 'invalid_input' },
  ],
  mostTags: 50,
};

/** Each session has one lease. */
const { owner: _owner, ...WITHOUT_OWNER } = kernel;

const TABLE: readonly (readonly [string, BrowserService, ServiceSample])[] = [
  ['kernel', kernel, KERNEL],
  ['a service without owner', WITHOUT_OWNER, KERNEL],
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
      ...ANSWERS[name],
    },
  ]),
];

it.each(TABLE)('%s conforms to the interface of a service', (_name, service, sample) => {
  expect(serviceFaults(service, sample)).toEqual([]);
});

/** Whether a video must be found first. */
const isSearch = (video: object | undefined) => video !== undefined && 'find' in video;

it.each(TABLE.filter(([name]) => CONTRACTS.some((contract) => contract.name === name)))(
  'the sample of %s has an answer for each of its requests',
  (_name, { find, sessions, replays }, sample) => {
    const missing = {
      required: sample.required === undefined,
      found: find !== undefined && sample.found === undefined,
      sessions: sessions !== undefined && sample.sessions === undefined,
      recordings: replays !== undefined && sample.recordings === undefined,
      video: isSearch(replays?.video?.('id', 'replay')) && sample.video === undefined,
    };
    expect(Object.entries(missing).filter(([, isMissing]) => isMissing)).toEqual([]);
  },
);

const LEASE = { pool: 'p', id: 'one', keepAlive: false, record: false };
const AT = { baseUrl: new URL('https://service.example.com'), token: TOKEN };
const SHOWN = 'a-secret-that-nobody-hides';

it.each<[Partial<Record<keyof BrowserService, unknown>>, string]>([
  [{ grant: undefined }, 'service has no function grant'],
  [{ keepAlive: '5 min' }, 'service has a keepAlive that is not a positive integer'],
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
  [{ sessions: { list: () => undefined, read: () => [] } }, 'sessions.read finds our lease in [], not only'],
  [{ replays: { ...kernel.replays!, read: () => [{ finished_at: 'soon' }] } }, 'reads the time soon'],
  [{ replays: { ...kernel.replays!, access: undefined } }, 'replays lacks access'],
  [
    { acquire: (lease: LeaseRequest) => ({ method: 'POST', path: '/', body: { tag: `${lease.id} mark` } }) },
    'acquire does not contain the id of the lease as a whole value',
  ],
  [{ acquire: addTag }, 'acquire adds a tag of this library to 50 tags of the user'],
  [{ acquire: dropTags }, 'acquire drops tags of the user'],
])('a fault of an adapter is named: %o', (change, fault) => {
  const sample = { ...KERNEL, response: { ...(KERNEL.response as object), key: SHOWN }, secrets: [SHOWN] };
  const faults = serviceFaults({ ...kernel, ...change } as BrowserService, sample);
  expect(faults.join('\n')).toContain(fault);
});

it.each<[Partial<ServiceSample>, string]>([
  [
    { errors: [{ status: 400, body: { reason: 'no' }, says: 'because', code: 'c' }] },
    'does not say "because"',
  ],
  [{ errors: [{ status: 400, body: { code: 'a' }, says: 'a', code: 'c' }] }, 'has the code a, not c.'],
  [{ video: { replayId: 'r', ready: {} } }, 'replays.video returns no search'],
  [
    { found: [{ session_id: 'session-1', tags: { [LEASE_TAG]: LEASE_ID } }] },
    "find says isWhole, and grant can't read the entry, which lacks the required field created_at.",
  ],
])('a fault of a sample is named: %o', (change, fault) => {
  expect(serviceFaults(kernel, { ...KERNEL, ...change }).join('\n')).toContain(fault);
});

it.each<[string, (json: unknown) => unknown, string]>([
  ['never', () => undefined, 'reads no video in the sample that has one'],
  ['always', () => 'https://files.example.com/v', 'reads a video in the sample without one'],
  ['at an address without TLS', () => 'http://files.example.com/v', 'reads an address that is not encrypted'],
])('a fault of a search for videos is named: it finds one %s', (_when, found, fault) => {
  const video = () => ({ find: { method: 'GET', path: '/videos' } as const, read: found as () => string });
  const service: BrowserService = { ...kernel, replays: { ...kernel.replays!, video } };
  const sample = { ...KERNEL, video: { replayId: 'r', ready: { a: 1 }, pending: {} } };
  expect(serviceFaults(service, sample).join('\n')).toContain(fault);
});

function addTag(lease: LeaseRequest) {
  return { method: 'POST', path: '/leases', body: { tags: { ...lease.tags, [LEASE_TAG]: lease.id } } };
}

function dropTags() {
  return { method: 'POST', path: '/leases', body: {} };
}

function showSecret(json: unknown) {
  const { session_id: id, cdp_ws_url: cdpUrl } = json as { session_id: string; cdp_ws_url: string };
  return { id, session: { id, key: SHOWN }, cdpUrl };
}

/** As a service whose secret has a name that only its sessions show. */
function hideSecret(json: unknown) {
  return { ...kernel.grant(json, LEASE, AT), secretFields: ['key'] };
}

it.each<[BrowserService, string]>([
  [browserless(), 'browserless({ timeout: 300_000 }), in ms'],
  [browserless({ session: { ttl: 60_000 } }), 'here 60000 ms: increase browserless({ session: { ttl } })'],
  [steel(), 'steel({ timeout: 900_000 }), in ms'],
  [browserbase(), 'browserbase({ timeout: 3600 }), in s'],
  [hyperbrowser(), 'hyperbrowser({ timeoutMinutes: 60 })'],
  [anchor(), 'anchor({ session: { timeout: { max_duration: 60 } } }), in minutes'],
  [browserUse(), 'browserUse({ timeout: 240 }), in minutes'],
])('the time limit of %o is named with its option: %s', ({ lossAdvice }, option) => {
  expect(lossAdvice).toContain(option);
});

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
  ...['localhost:4499/json/evil?', '127.0.0.2:4499', 'localhost@evil.test:80', 'evil.test:80#localhost'].map(
    (debuggerAddress): [string, string, object, object] => [
      `a server that names ${debuggerAddress} as a port`,
      'http://127.0.0.1:9515',
      { ...DRIVER, 'goog:chromeOptions': { debuggerAddress } },
      { bidiUrl: 'ws://127.0.0.1:9515/session/one' },
    ],
  ),
  ['chromedriver elsewhere', 'https://far.test', DRIVER, { bidiUrl: 'wss://far.test/session/one' }],
  [
    'a server whose path begins as another host does',
    'https://far.test',
    { webSocketUrl: 'ws://far.test//127.0.0.2:9/session/one' },
    { bidiUrl: 'wss://far.test//127.0.0.2:9/session/one' },
  ],
  [
    'a server whose path begins as a user name does',
    'https://far.test',
    { webSocketUrl: 'mailto:@evil.test/one' },
    { bidiUrl: 'wss://far.test/@evil.test/one' },
  ],
])('webdriver reads the addresses of a session of %s', (_what, url, capabilities, addresses) => {
  const at = { baseUrl: new URL(url), token: undefined };
  const { cdpUrl, bidiUrl } = webdriver().grant({ value: { sessionId: 'one', capabilities } }, LEASE, at);
  expect({ cdpUrl, bidiUrl }).toEqual({ cdpUrl: undefined, ...addresses });
});
