import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BrowserPool, type BrowserPoolOptions } from '../../src/index.js';
import { namedPool } from '../../src/pool/browser-pool.js';
import { coreOf } from '../../src/pool/pool-core.js';
import { SERVICE_NAMES, serviceNamed } from '../../src/pool/named-service.js';
import {
  anchor,
  browserbase,
  browserless,
  type BrowserService,
  kernel,
  steel,
  webdriver,
} from '../../src/services.js';
import { environment, SECRET_VARIABLES } from '../../src/shared/environment.js';
import { routeTo } from '../../src/shared/network.js';
import { redact } from '../../src/shared/redact.js';
import { contractOf, CONTRACTS, ContractServer } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';

describe('the service of the environment', () => {
  /** The address and the token with which a pool would send its requests. */
  function accessOf(options: BrowserPoolOptions<object> = {}) {
    const pool = new BrowserPool<object>('mine', options);
    const { service, client } = coreOf(pool);
    return { service: service.name, baseUrl: pool.baseUrl, token: client.lastToken };
  }

  function environment(variables: Record<string, string>): void {
    const none = { BROWSER_POOL_SERVICE: '', BROWSER_POOL_BASE_URL: '', BROWSER_POOL_ACCESS_TOKEN: '' };
    for (const [name, value] of Object.entries({ ...none, ...variables })) vi.stubEnv(name, value);
  }

  it.each(SERVICE_NAMES)(
    'BROWSER_POOL_SERVICE=%s chooses the service at its own address or the given one',
    (name) => {
      environment({ BROWSER_POOL_SERVICE: name, BROWSER_POOL_ACCESS_TOKEN: TOKEN });
      const needed = {
        cdp: /cdp .*needs BROWSER_POOL_BASE_URL/,
        cloudflare: /cloudflare .*needs CLOUDFLARE_ACCOUNT_ID/,
      };
      if (Object.hasOwn(needed, name)) expect(() => accessOf()).toThrow(needed[name as 'cdp']);
      vi.stubEnv('CLOUDFLARE_ACCOUNT_ID', 'an-account');
      if (name !== 'cdp') {
        const { baseUrl } = serviceNamed(name, undefined).service;
        expect(accessOf()).toEqual({ service: name, baseUrl: new URL(baseUrl!).href, token: TOKEN });
      }
      vi.stubEnv('BROWSER_POOL_BASE_URL', 'http://127.0.0.1:9/');
      expect(accessOf()).toMatchObject({ service: name, baseUrl: 'http://127.0.0.1:9/' });
    },
  );

  it('knows by name each service that has a published API, or is tested without one, and no other', () => {
    const tested = new Set(['kernel', 'cdp', ...CONTRACTS.map(({ service }) => service.name)]);
    expect([...tested].toSorted()).toEqual(SERVICE_NAMES.toSorted());
  });

  it('refuses a local address beside another service, both of the environment', () => {
    environment({ BROWSER_POOL_SERVICE: 'steel', BROWSER_POOL_BASE_URL: 'local', STEEL_API_KEY: 'own-key' });
    expect(() => accessOf()).toThrow('BROWSER_POOL_BASE_URL is local, but BROWSER_POOL_SERVICE is steel');
    expect(accessOf({ baseUrl: 'local' })).toMatchObject({ service: 'local' });
  });

  it('refuses an unknown name, and names the variable and the names that exist', () => {
    environment({ BROWSER_POOL_SERVICE: 'browserbse' });
    const all = `BROWSER_POOL_SERVICE must be one of ${SERVICE_NAMES.join(', ')}, not "browserbse".`;
    for (const create of [() => accessOf(), () => namedPool('mine')]) expect(create).toThrow(all);
  });

  it.each<[string, Record<string, string>, BrowserPoolOptions<object>, object]>([
    [
      'options come before the environment',
      { BROWSER_POOL_BASE_URL: 'https://elsewhere.example.com', BROWSER_POOL_ACCESS_TOKEN: 'ours' },
      { baseUrl: 'http://127.0.0.1:9', token: 'given-token' },
      { baseUrl: 'http://127.0.0.1:9/', token: 'given-token' },
    ],
    [
      'the key of a service is read from its usual variable',
      { BROWSERBASE_API_KEY: 'own-key' },
      { service: browserbase() },
      { baseUrl: 'https://api.browserbase.com/', token: 'own-key' },
    ],
    [
      'the first of its variables counts',
      { ANCHOR_API_KEY: 'second-key', ANCHORBROWSER_API_KEY: 'first-key' },
      { service: anchor() },
      { token: 'first-key' },
    ],
    [
      'our variable comes first, for the service of the environment',
      { BROWSER_POOL_SERVICE: 'steel', BROWSER_POOL_ACCESS_TOKEN: 'ours', STEEL_API_KEY: 'own-key' },
      {},
      { service: 'steel', token: 'ours' },
    ],
    [
      'the token of the service of the environment is not that of another one',
      { BROWSER_POOL_ACCESS_TOKEN: 'for-kernel', STEEL_API_KEY: 'own-key' },
      { service: steel() },
      { baseUrl: 'https://api.steel.dev/', token: 'own-key' },
    ],
    [
      'the default service has a variable, too',
      { BROWSER_POOL_SERVICE: 'kernel', KERNEL_API_KEY: 'own-key' },
      {},
      { baseUrl: 'https://api.onkernel.com/', token: 'own-key' },
    ],
    [
      'a service at an address of the caller',
      { BROWSERLESS_TOKEN: 'own-key' },
      { service: browserless({ baseUrl: 'http://127.0.0.1:3000' }) },
      { baseUrl: 'http://127.0.0.1:3000/', token: 'own-key' },
    ],
    [
      'a service that needs no token gets none of another one',
      { BROWSER_POOL_ACCESS_TOKEN: 'for-kernel' },
      { service: webdriver() },
      { baseUrl: 'http://localhost:4444/', token: undefined },
    ],
    [
      'the address of a local pool is that of this machine',
      { BROWSER_POOL_SERVICE: 'steel', STEEL_API_KEY: 'own-key' },
      { baseUrl: 'local' },
      { service: 'local', baseUrl: 'local:mine', token: undefined },
    ],
    [
      'the options of a service, at the address of the environment',
      {
        BROWSER_POOL_SERVICE: 'browserbase',
        BROWSER_POOL_BASE_URL: 'http://127.0.0.1:9',
        BROWSER_POOL_ACCESS_TOKEN: 'ours',
      },
      { service: browserbase({ projectId: 'p' }) },
      { baseUrl: 'http://127.0.0.1:9/', token: 'ours' },
    ],
  ])('%s', (_what, variables, options, access) => {
    environment(variables);
    expect(accessOf(options)).toMatchObject(access);
  });

  const HERE = 'http://127.0.0.1:9';
  const ELSEWHERE = 'https://elsewhere.example.com';
  /** A service with an address of its own, and one without. */
  const OTHER: BrowserService = { ...kernel, name: 'other', baseUrl: HERE };
  const { baseUrl: _none, ...HOMELESS } = OTHER;

  it.each<[of: string, to: string, options: BrowserPoolOptions<object>]>([
    ['', 'an address', { baseUrl: HERE }],
    ['', 'kernel at an address', { baseUrl: HERE, service: { ...kernel } }],
    ['local', 'an address', { baseUrl: HERE }],
    [HERE, 'the default', {}],
    [HERE, 'the same address', { baseUrl: `${HERE}/` }],
    [HERE, 'a service with this address', { service: OTHER }],
    [HERE, 'a service without an address', { service: HOMELESS }],
  ])('the token of the environment with the address %j is sent to %s', (address, _to, options) => {
    environment({ BROWSER_POOL_BASE_URL: address, BROWSER_POOL_ACCESS_TOKEN: TOKEN });
    expect(accessOf(options)).toMatchObject({ baseUrl: `${HERE}/`, token: TOKEN });
  });

  it.each<[of: string, to: string, options: BrowserPoolOptions<object>]>([
    ['', 'another service', { service: OTHER }],
    ['', 'another service without an address', { service: HOMELESS, baseUrl: HERE }],
    ['', 'browserbase', { service: browserbase() }],
    ['local', 'another service', { service: OTHER }],
    [ELSEWHERE, 'another service', { service: OTHER }],
    [ELSEWHERE, 'another address', { baseUrl: HERE }],
    [ELSEWHERE, 'kernel at another address', { service: kernel, baseUrl: HERE }],
  ])('the token of the environment with the address %j is not sent to %s', (address, _to, options) => {
    environment({ BROWSER_POOL_BASE_URL: address, BROWSER_POOL_ACCESS_TOKEN: TOKEN });
    const message = /BROWSER_POOL_ACCESS_TOKEN .*is not sent to .*Pass the option token/;
    expect(() => accessOf(options)).toThrow(message);
  });

  it.each<[string, string, BrowserPoolOptions<object>]>([
    ['KERNEL_API_KEY', 'another address', { baseUrl: HERE }],
    ['KERNEL_API_KEY', 'a copy of kernel with another address', { service: { ...kernel, baseUrl: HERE } }],
    ['STEEL_API_KEY', 'steel at another address', { service: steel(), baseUrl: HERE }],
  ])('the key in %s is not sent to %s', (variable, _to, options) => {
    environment({ [variable]: 'own-key' });
    expect(() => accessOf(options)).toThrow(/The access token is missing/);
  });

  it('leases from the named service with a pool by name, also after its variables change', async () => {
    await using server = await ContractServer.start(contractOf('steel'));
    environment({
      BROWSER_POOL_SERVICE: 'steel',
      BROWSER_POOL_BASE_URL: server.baseUrl,
      BROWSER_POOL_ACCESS_TOKEN: TOKEN,
    });
    const pool = namedPool('mine');
    expect(namedPool('mine')).toBe(pool);
    const session = (await pool.acquire()) as object as { id: string };
    await pool.release(session.id);
    expect(server.released).toEqual([session.id]);
    await pool.close();
    let last = pool;
    for (const [name, value] of [
      ['BROWSER_POOL_ACCESS_TOKEN', 'another-token'],
      ['BROWSER_POOL_BASE_URL', 'http://127.0.0.1:9/'],
      ['BROWSER_POOL_SERVICE', 'hyperbrowser'],
    ] as const) {
      vi.stubEnv(name, value);
      expect(namedPool('mine'), name).not.toBe(last);
      last = namedPool('mine');
    }
    expect(last.baseUrl).toBe('http://127.0.0.1:9/');
    expect(coreOf(last)).toMatchObject({
      service: { name: 'hyperbrowser' },
      client: { lastToken: 'another-token' },
    });
  });
});

describe('the environment of other programs', () => {
  const before = { ...process.env };
  beforeEach(() => {
    for (const name of Object.keys(process.env)) delete process.env[name];
  });
  afterEach(() => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, before);
  });

  const SECRETS = {
    ...Object.fromEntries(SECRET_VARIABLES.map((name) => [name, 'a-secret'])),
    REDIS_URL: 'redis://:a-secret@127.0.0.1:6379',
    BROWSER_POOL_BASE_URL: 'wss://browserless.example.com/?token=a-secret',
  };

  it('gives the variables of the user to a program, without the secrets', () => {
    const own = {
      PATH: '/bin',
      MY_TOKEN: 'mine',
      HTTPS_PROXY: 'http://user:mine@proxy:1',
      NODE_OPTIONS: '--x',
    };
    Object.assign(process.env, own, SECRETS);
    expect(environment.forProgram()).toEqual(own);
    expect(environment.forProgram(['STEEL_API_KEY', 'REDIS_URL'])).toEqual({
      ...own,
      STEEL_API_KEY: 'a-secret',
      REDIS_URL: SECRETS.REDIS_URL,
    });
  });

  it('passes the addresses that contain no secret on', () => {
    const own = { REDIS_URL: 'redis://127.0.0.1:6379', BROWSER_POOL_BASE_URL: 'https://pool.example.com/v1' };
    Object.assign(process.env, own);
    expect(environment.forProgram()).toEqual(own);
  });

  it('gives a browser and a helper process what they need, without secrets and loaders', () => {
    const needed = {
      PATH: '/bin',
      TMPDIR: '/t',
      LC_ALL: 'C',
      DISPLAY: ':1',
      NODE_EXTRA_CA_CERTS: '/ca.pem',
      no_proxy: 'a',
    };
    const proxies = {
      https_proxy: 'http://user:a-secret@proxy:3128',
      HTTP_PROXY: 'user:a-secret@proxy:3128',
    };
    Object.assign(process.env, needed, proxies, SECRETS, {
      AWS_SECRET_ACCESS_KEY: 'a-secret',
      NODE_OPTIONS:
        '--import x --use-system-ca --require /a/.pnp.cjs --experimental-loader=/a/.pnp.loader.mjs',
    });
    const expected = { ...needed, https_proxy: 'http://proxy:3128', HTTP_PROXY: 'proxy:3128' };
    expect(environment.forHelperProgram()).toEqual(expected);
    const packages = ['--require', '/a/.pnp.cjs', '--experimental-loader=/a/.pnp.loader.mjs'];
    expect(environment.forHelper()).toMatchObject({ args: ['--use-system-ca'], packages, env: expected });
  });

  it.each(SERVICE_NAMES)('lists the variables with the token of the service %s', (name) => {
    const { service } = serviceNamed(name, 'https://pool.example.com');
    expect(SECRET_VARIABLES).toEqual(expect.arrayContaining([...(service.usualToken?.variables ?? [])]));
  });
});

describe('the proxy of the environment', () => {
  const PROXY = 'http://proxy.test:3128';
  const OTHER = 'https://other.test';
  const VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'ALL_PROXY'];

  beforeEach(() => {
    for (const name of VARIABLES.flatMap((one) => [one, one.toLowerCase()])) vi.stubEnv(name, undefined);
  });

  function proxyOf(url: string, environment: Record<string, string>, option?: string | false) {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    return routeTo(new URL(url), { proxy: option }).proxy;
  }

  it.each<[url: string, environment: Record<string, string>, proxy: string | undefined]>([
    ['https://a.test', {}, undefined],
    ['https://a.test', { HTTPS_PROXY: PROXY }, PROXY],
    ['wss://a.test', { https_proxy: PROXY, HTTPS_PROXY: OTHER }, PROXY],
    ['https://a.test', { HTTPS_PROXY: 'proxy.test:3128' }, PROXY],
    ['https://a.test', { HTTP_PROXY: PROXY }, undefined],
    ['http://a.test', { HTTP_PROXY: PROXY, HTTPS_PROXY: OTHER }, PROXY],
    ['ws://a.test', { http_proxy: PROXY }, PROXY],
    ['https://a.test', { HTTPS_PROXY: PROXY, NO_PROXY: 'b.test, a.test' }, undefined],
    ['https://x.a.test', { HTTPS_PROXY: PROXY, no_proxy: 'A.test' }, undefined],
    ['https://x.a.test', { HTTPS_PROXY: PROXY, NO_PROXY: '.a.test' }, undefined],
    ['https://x.a.test', { HTTPS_PROXY: PROXY, NO_PROXY: '*.a.test' }, undefined],
    ['https://xa.test', { HTTPS_PROXY: PROXY, NO_PROXY: 'a.test,,' }, PROXY],
    ['https://a.test', { HTTPS_PROXY: PROXY, NO_PROXY: '*' }, undefined],
    ['https://a.test', { HTTPS_PROXY: PROXY, NO_PROXY: 'a.test:443' }, undefined],
    ['https://a.test:8443', { HTTPS_PROXY: PROXY, NO_PROXY: 'a.test:443' }, PROXY],
    ['https://a.test', { HTTPS_PROXY: PROXY, NO_PROXY: 'a.test.' }, undefined],
    ['https://a.test.', { HTTPS_PROXY: PROXY, NO_PROXY: 'a.test' }, undefined],
    ['https://[fd00::1]', { HTTPS_PROXY: PROXY, NO_PROXY: 'fd00::1' }, undefined],
    ['https://[fd00::1]', { HTTPS_PROXY: PROXY, NO_PROXY: 'localhost,FD00:0::1' }, undefined],
    ['https://[fd00::1]:8080', { HTTPS_PROXY: PROXY, NO_PROXY: '[fd00::1]:8080' }, undefined],
    ['https://[fd00::1]', { HTTPS_PROXY: PROXY, NO_PROXY: '[fd00::1]:8080' }, PROXY],
    ['https://[fd12::1]', { HTTPS_PROXY: PROXY, NO_PROXY: 'fd00::/8' }, undefined],
    ['https://[fe00::1]', { HTTPS_PROXY: PROXY, NO_PROXY: 'fd00::/8' }, PROXY],
    ['https://10.1.2.3', { HTTPS_PROXY: PROXY, NO_PROXY: '10.0.0.0/8' }, undefined],
    ['https://11.1.2.3', { HTTPS_PROXY: PROXY, NO_PROXY: '10.0.0.0/8' }, PROXY],
    ['https://11.1.2.3', { HTTPS_PROXY: PROXY, NO_PROXY: '10.0.0.0/33 2.3' }, PROXY],
    ['https://a.test', { HTTPS_PROXY: PROXY, NO_PROXY: '10.0.0.0/8 a.test' }, undefined],
    ['http://127.0.0.1:80', { HTTP_PROXY: PROXY }, undefined],
    ['ws://localhost', { HTTP_PROXY: PROXY }, undefined],
    ['wss://[::1]', { HTTPS_PROXY: PROXY }, undefined],
  ])('connects to %s with %j through %s', (url, environment, proxy) => {
    expect(proxyOf(url, environment)).toBe(proxy);
  });

  it('prefers the option to the environment, also with false, and never connects to loopback through a proxy', () => {
    const environment = { HTTPS_PROXY: OTHER, NO_PROXY: 'a.test' };
    expect(proxyOf('https://a.test', environment, PROXY)).toBe(PROXY);
    expect(proxyOf('https://b.test', environment, false)).toBeUndefined();
    expect(proxyOf('https://127.0.0.1', environment, PROXY)).toBeUndefined();
  });

  it('hides the credentials of a proxy in all texts', () => {
    proxyOf('https://a.test', {}, 'http://ada:secret%2Dpass@proxy.test');
    const basic = Buffer.from('ada:secret-pass').toString('base64');
    const shown = redact(`http://ada:secret-pass@proxy.test secret-pass secret%2Dpass Basic ${basic}`);
    expect(shown).not.toMatch(new RegExp(`secret|${basic}`));
  });

  it.each(['socks5://proxy.test:1080', 'http://', 'http://ada:100%@proxy.test'])(
    'refuses %s as the proxy of the environment, without showing it',
    (value) => {
      expect(() => proxyOf('https://a.test', { HTTPS_PROXY: value })).toThrow(
        /^HTTPS_PROXY must be the URL of an HTTP proxy, such as http:\/\/proxy\.example\.com:3128\.$/,
      );
    },
  );
});
