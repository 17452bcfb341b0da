import { beforeEach, expect, it, vi } from 'vitest';
import { INTERNALS } from '../../src/pool/pool-settings.js';
import { openNamedPool, readPoolNames } from '../../src/pool/pool-names.js';

const KERNEL = 'https://api.onkernel.com';
const STEEL = 'https://api.steel.dev';
const OWN = 'https://pools.example.com';

beforeEach(() => {
  for (const name of ['BASE_URL', 'SERVICE', 'ACCESS_TOKEN']) vi.stubEnv(`BROWSER_POOL_${name}`, undefined);
  vi.stubEnv('KERNEL_API_KEY', 'of-kernel');
  vi.stubEnv('STEEL_API_KEY', 'of-steel');
});

it.each<[list: string, environment: Record<string, string>, addresses: string[]]>([
  ['shop', { SERVICE: 'kernel' }, [`${KERNEL}/ shop`]],
  ['shop', { BASE_URL: OWN, ACCESS_TOKEN: 'own' }, [`${OWN}/ shop`]],
  [
    'shop, steel:spare ,local',
    { BASE_URL: OWN, ACCESS_TOKEN: 'own' },
    [`${OWN}/ shop`, `${STEEL}/ spare`, 'local:local local'],
  ],
  // The address and its token are those of one service.
  ['kernel:shop,steel:spare', {}, [`${KERNEL}/ shop`, `${STEEL}/ spare`]],
  ['kernel:shop,steel:spare', { BASE_URL: OWN, ACCESS_TOKEN: 'own' }, [`${OWN}/ shop`, `${STEEL}/ spare`]],
  ['kernel:shop', { SERVICE: 'steel', ACCESS_TOKEN: 'own' }, [`${KERNEL}/ shop`]],
  ['shop,kernel:spare', { SERVICE: 'steel' }, [`${STEEL}/ shop`, `${KERNEL}/ spare`]],
  // Whoever names a service does not mean this machine.
  ['shop,kernel:shop', { BASE_URL: 'local' }, ['local:shop shop', `${KERNEL}/ shop`]],
  ['local', { SERVICE: 'steel', BASE_URL: OWN }, ['local:local local']],
  ['cdp:mine', { SERVICE: 'cdp', BASE_URL: 'http://127.0.0.1:9222' }, ['http://127.0.0.1:9222/ mine']],
  ['webdriver:grid', {}, ['http://localhost:4444/ grid']],
  ['kernel:browsers,local', {}, [`${KERNEL}/ kernel`, 'local:local local']],
  ['kernel:browsers', { BASE_URL: OWN, ACCESS_TOKEN: 'own' }, [`${OWN}/ kernel`]],
  ['kernel:browsers', { SERVICE: 'steel', ACCESS_TOKEN: 'own' }, [`${KERNEL}/ kernel`]],
  ['steel:a:b', {}, [`${STEEL}/ a:b`]],
])('%s, with %j', (list, environment, expected) => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(`BROWSER_POOL_${name}`, value);
  const pools = readPoolNames(list).map((name) => openNamedPool(name, {}));
  expect(pools.map(({ baseUrl, idOrName }) => `${baseUrl} ${idOrName}`)).toEqual(expected);
});

it.each([
  ['a,,b', 'A name of a pool is missing in "a,,b".'],
  ['steel:', 'A name of a pool is missing in "steel:".'],
  ['stel:a', 'stel:a names no service: before the colon, write one of kernel, '],
  ['constructor:a', 'names no service'],
  ['cdp:mine', 'the service cdp (BROWSER_POOL_SERVICE) needs BROWSER_POOL_BASE_URL'],
])('refuses %s', (list, message) => {
  expect(() => readPoolNames(list)).toThrow(message);
});

it('kernel:browsers creates browsers as BROWSER_POOL_KERNEL_CREATE says', () => {
  const create = () => {
    const [name] = readPoolNames('kernel:browsers');
    const { service } = openNamedPool(name!, {})[INTERNALS]();
    return service.acquire({ pool: 'kernel', id: 'one', keepAlive: false, record: false });
  };
  const request = { method: 'POST', path: '/browsers' };
  expect(create()).toMatchObject({ ...request, body: { tags: {} } });
  vi.stubEnv('BROWSER_POOL_KERNEL_CREATE', '{"headless":true,"profile":{"name":"a","save_changes":true}}');
  expect(create()).toMatchObject({ body: { headless: true, profile: { name: 'a', save_changes: true } } });
  for (const wrong of ['{', '[]', 'true']) {
    vi.stubEnv('BROWSER_POOL_KERNEL_CREATE', wrong);
    expect(create).toThrow('BROWSER_POOL_KERNEL_CREATE must be a JSON object');
  }
});

it('the token of the environment, or of an option, is not that of another service', () => {
  vi.stubEnv('STEEL_API_KEY', undefined);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', 'own');
  const [name] = readPoolNames('steel:spare');
  const missing = /^The access token is missing\. .* STEEL_API_KEY\.$/;
  expect(() => openNamedPool(name!, { token: 'own' })).toThrow(missing);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', undefined);
  // With this variable, it would be the token of another service.
  expect(() => openNamedPool(name!, {})).toThrow(missing);
});
