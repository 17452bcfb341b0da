import { beforeEach, expect, it, vi } from 'vitest';
import { routeTo } from '../../src/shared/network.js';
import { redact } from '../../src/shared/redact.js';

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
