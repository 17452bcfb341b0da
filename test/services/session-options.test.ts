import { describe, expect, it } from 'vitest';
import { BrowserPool, withPooledBrowser, type SessionOptions } from '../../src/index.js';
import {
  anchor,
  browserbase,
  browserless,
  browserUse,
  cdp,
  cloudflare,
  hyperbrowser,
  kernel,
  steel,
  webdriver,
  type BrowserService,
} from '../../src/services.js';
import { acquireRequest } from '../../src/services/check-service.js';
import { contractOf, ContractServer } from '../support/contract-server.js';
import { TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { expectNoSecrets } from '../support/collected.js';
import { plainConnector } from '../support/plain-connector.js';
import { rejection } from '../pool/support.js';

const LEASE = { pool: 'p', id: 'one', keepAlive: false, record: false };

/** What the request of a service says: its body, or the query of the WebSocket that is the request. */
function fieldsFor(service: BrowserService, sessionOptions: SessionOptions): object {
  const lease = { ...LEASE, sessionOptions };
  const request = acquireRequest(service, lease);
  if (request) return request.body!;
  const at = { baseUrl: new URL(service.baseUrl!), token: undefined };
  return Object.fromEntries(new URL(service.grant(undefined, lease, at).cdpUrl!).searchParams);
}

const OWN_PROXY = 'http://ada:canary-p%40ss@proxy.example.com:3128';
const SERVER = { server: 'http://proxy.example.com:3128', username: 'ada', password: 'canary-p@ss' };

const TABLE: Readonly<Record<string, readonly [BrowserService, ...[SessionOptions, object][]]>> = {
  browserbase: [
    browserbase({ region: 'us-west-2', browserSettings: { blockAds: true } }),
    [{ region: 'eu-central-1' }, { region: 'eu-central-1' }],
    [
      { viewport: { width: 800, height: 600 } },
      { browserSettings: { blockAds: true, viewport: { width: 800 } } },
    ],
    [{ timeout: 90_500 }, { timeout: 91 }],
    [{ stealth: true }, { browserSettings: { verified: true } }],
    [{ profile: 'a' }, { browserSettings: { context: { id: 'a' } } }],
    [{ profile: { id: 'a', save: true } }, { browserSettings: { context: { id: 'a', persist: true } } }],
    [{ proxy: false }, { proxies: false }],
    [{ proxy: true }, { proxies: true }],
    [{ proxy: { country: 'de' } }, { proxies: [{ type: 'browserbase', geolocation: { country: 'DE' } }] }],
    [{ proxy: OWN_PROXY }, { proxies: [{ type: 'external', ...SERVER }] }],
  ],
  steel: [
    steel({ proxyUrl: 'http://other.example.com:1', useProxy: true }),
    [{ region: 'lax' }, { region: 'lax', useProxy: true }],
    [{ viewport: { width: 800, height: 600 } }, { dimensions: { width: 800, height: 600 } }],
    [{ timeout: 90_500 }, { timeout: 90_500 }],
    [{ stealth: false }, { stealthConfig: { skipFingerprintInjection: true } }],
    [{ profile: { id: 'a', save: false } }, { profileId: 'a', persistProfile: false }],
    [{ proxy: false }, { useProxy: false, proxyUrl: undefined }],
    [{ proxy: { country: 'de' } }, { useProxy: { geolocation: { country: 'DE' } } }],
    [{ proxy: OWN_PROXY }, { proxyUrl: `${OWN_PROXY}/` }],
  ],
  hyperbrowser: [
    hyperbrowser(),
    [{ region: 'europe-west' }, { region: 'europe-west' }],
    [{ viewport: { width: 800, height: 600 } }, { screen: { width: 800, height: 600 } }],
    [{ timeout: 90_500 }, { timeoutMinutes: 2 }],
    [{ stealth: true }, { useStealth: true }],
    [{ profile: { id: 'a', save: true } }, { profile: { id: 'a', persistChanges: true } }],
    [{ proxy: { country: 'DE' } }, { useProxy: true, proxyCountry: 'DE' }],
    [
      { proxy: OWN_PROXY },
      {
        useProxy: true,
        proxyServer: SERVER.server,
        proxyServerUsername: 'ada',
        proxyServerPassword: 'canary-p@ss',
      },
    ],
  ],
  anchor: [
    anchor({ session: { timeout: { idle_timeout: 3 } } }),
    [{ viewport: { width: 800, height: 600 } }, { browser: { viewport: { width: 800, height: 600 } } }],
    [{ timeout: 90_500 }, { session: { timeout: { idle_timeout: 3, max_duration: 2 } } }],
    [{ stealth: true }, { browser: { extra_stealth: { active: true } } }],
    [{ profile: { name: 'a', save: true } }, { browser: { profile: { name: 'a', persist: true } } }],
    [{ proxy: true }, { session: { proxy: { type: 'anchor_proxy', active: true } } }],
    [{ proxy: OWN_PROXY }, { session: { proxy: { type: 'custom', active: true, ...SERVER } } }],
  ],
  'browser-use': [
    browserUse(),
    [{ viewport: { width: 800, height: 600 } }, { browserScreenWidth: 800, browserScreenHeight: 600 }],
    [{ timeout: 90_500 }, { timeout: 2 }],
    [{ profile: 'a' }, { profileId: 'a' }],
    [{ proxy: false }, { proxyCountryCode: null }],
    [{ proxy: { country: 'DE' } }, { proxyCountryCode: 'de' }],
    [
      { proxy: OWN_PROXY },
      { customProxy: { host: 'proxy.example.com', port: 3128, username: 'ada', password: 'canary-p@ss' } },
    ],
    [{ proxy: 'https://proxy.example.com' }, { customProxy: { host: 'proxy.example.com', port: 443 } }],
  ],
  'browserless, a connection': [
    browserless({ timeout: 1, launch: { headless: false } }),
    [{ timeout: 90_500 }, { timeout: '90500' }],
    [{ stealth: true }, { launch: '{"headless":false,"stealth":true}' }],
    [{ proxy: { country: 'DE' } }, { proxy: 'residential', proxyCountry: 'de' }],
  ],
  'browserless, a session': [
    browserless({ session: { ttl: 1 } }),
    [
      { timeout: 90_500, stealth: true },
      { ttl: 90_500, stealth: true },
    ],
  ],
  'kernel without a pool': [
    kernel({ create: { viewport: { width: 1, height: 1, refresh_rate: 10 }, proxy_id: 'other' } }),
    [{ viewport: { width: 800, height: 600 } }, { viewport: { width: 800, height: 600, refresh_rate: 10 } }],
    [{ stealth: true }, { stealth: true }],
    [{ profile: 'shopper' }, { profile: { name: 'shopper' } }],
    [{ profile: { id: 'p-1', save: true } }, { profile: { id: 'p-1', save_changes: true } }],
    [{ proxy: { id: 'proxy-1' } }, { proxy_id: 'proxy-1' }],
    [{ proxy: false }, { proxy_id: undefined }],
  ],
};

describe.each(Object.entries(TABLE))('%s says it in its own fields:', (_name, [service, ...cases]) => {
  it.each(cases)('%j', (wanted, expected) => {
    expect(fieldsFor(service, wanted)).toMatchObject(expected);
  });
});

it('what no option names stays as the service was told', () => {
  const service = browserbase({ region: 'us-west-2' });
  expect(fieldsFor(service, {})).toEqual(service.acquire(LEASE)!.body);
  expect(fieldsFor(service, { viewport: undefined })).toEqual(service.acquire(LEASE)!.body);
});

it.each<[string, BrowserService, SessionOptions, string]>([
  [
    'a pool',
    kernel,
    { viewport: { width: 1, height: 1 } },
    'sessionOptions.viewport asks, because the pool decides it',
  ],
  [
    'a created browser',
    kernel({ create: {} }),
    { region: 'x' },
    'sessionOptions.region asks, because it has nothing',
  ],
  ['a created browser', kernel({ create: {} }), { timeout: 1 }, 'kernel({ create: { timeout_seconds } })'],
  ['a created browser', kernel({ create: {} }), { proxy: true }, 'it does not choose a proxy by itself'],
  ['a created browser', kernel({ create: {} }), { proxy: OWN_PROXY }, 'it takes no URL of a proxy'],
  ['steel', steel(), { profile: { name: 'a' } }, 'because it knows profiles by their ids'],
  ['anchor', anchor(), { profile: { id: 'a' } }, 'because it knows profiles by their names'],
  ['anchor', anchor(), { region: 'eu' }, 'sessionOptions.region'],
  [
    'browser-use',
    browserUse(),
    { profile: { id: 'a', save: true } },
    'it decides itself whether a profile is saved',
  ],
  ['browserless', browserless(), { region: 'eu' }, 'pass browserless({ baseUrl })'],
  ['cloudflare', cloudflare({ accountId: 'a' }), { stealth: true }, 'it has nothing like it'],
  ['webdriver', webdriver(), { stealth: true }, 'it has nothing like it'],
  ['cdp', cdp('http://127.0.0.1:9'), { timeout: 1 }, 'it has nothing like it'],
  ['browserbase', browserbase(), { proxy: { id: 'a' } }, 'it stores no proxies'],
])('%s: refused by name before anything is sent (%#)', async (_name, service, sessionOptions, message) => {
  await using pool = new BrowserPool<object>('p', { service, baseUrl: UNREACHABLE, token: TOKEN });
  const error = await rejection(
    withPooledBrowser(pool, () => {}, { connector: plainConnector, sessionOptions }),
  );
  const [name] = Object.keys(sessionOptions);
  expect(error).toMatchObject({ name: 'InvalidOptionError', option: `sessionOptions.${name}` });
  expect(error.message).toContain(message);
  expectNoSecrets(error);
});

it.each<[object, string]>([
  [{ viewport: { width: 0, height: 1 } }, 'sessionOptions.viewport.width'],
  [{ viewPort: {} }, 'Did you mean viewport?'],
  [{ proxy: 'ftp://ada:canary-password@host' }, 'sessionOptions.proxy must be the URL of an HTTP proxy'],
  [{ proxy: { country: 'Germany' } }, 'sessionOptions.proxy must be true, false'],
  [{ proxy: { country: 'de', id: 'a' } }, 'sessionOptions.proxy must be true, false'],
  [{ profile: '' }, 'sessionOptions.profile must be an id or a name'],
  [{ timeout: -1 }, 'sessionOptions.timeout must be'],
])('refuses %j', async (sessionOptions, message) => {
  await using pool = new BrowserPool<object>('p', { service: steel(), baseUrl: UNREACHABLE, token: TOKEN });
  const error = await rejection(
    withPooledBrowser(pool, () => {}, { connector: plainConnector, sessionOptions }),
  );
  expect(error.message).toContain(message);
  expectNoSecrets(error);
});

it('of several pools, one that has not what is asked is not asked, and the password of the proxy is shown nowhere', async () => {
  await using first = await ContractServer.start(contractOf('browserless sessions'));
  await using second = await ContractServer.start(contractOf('steel'));
  const pools = [first, second].map(
    ({ baseUrl, contract: { service } }) => new BrowserPool<object>('p', { service, baseUrl, token: TOKEN }),
  );
  const events: object[] = [];
  const run = await withPooledBrowser(pools, ({ session }) => session, {
    connector: plainConnector,
    onEvent: (event) => void events.push(event),
    sessionOptions: { proxy: OWN_PROXY },
  });
  expect([first.requests, second.sessions.length]).toEqual([[], 1]);
  expect(second.sessions[0]!.body).toMatchObject({ proxyUrl: `${OWN_PROXY}/` });
  const failover = events.find((event) => 'type' in event && event.type === 'failover');
  expect(failover).toMatchObject({ error: { option: 'sessionOptions.proxy' } });
  for (const value of [run, events]) expectNoSecrets(value);
  second.isExpired = true;
  expectNoSecrets(
    await rejection(
      withPooledBrowser(pools[1]!, () => {}, {
        connector: plainConnector,
        sessionOptions: { proxy: OWN_PROXY },
      }),
    ),
  );
  await Promise.all(pools.map((pool) => pool.close()));
});
