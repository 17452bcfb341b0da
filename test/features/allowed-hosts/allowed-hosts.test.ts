import { expect, it, vi } from 'vitest';
import { BrowserPool, InvalidOptionError } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { PlayedLease } from '../../support/played-lease.js';

/** Nothing listens there: what is sent fails with another error. */
const pool = new BrowserPool('any', { baseUrl: 'http://127.0.0.1:9', token: 'any' });
const lease = (options: object) => playwright.withPooledBrowser(pool, () => {}, options);

it.each([
  ['', /has the rule '' at character 1, which is no host/],
  ['a.test, http://b.test', /has the rule 'http:\/\/b.test' at character 9, which is no host/],
  ['127.1', /which is no host/],
  ['0x7f.0.0.1', /which is no host/],
  ['10.*', /'10\.\*' at character 1, whose star could stand for a part of an IP address/],
  ['a.test,*1', /'\*1' at character 8, whose star/],
  ['*a*', /whose star/],
  ['*.0.0.1:80', /which is no host/],
  [3000, /must be a list of hosts/],
])('refuses the hosts %j before anything is sent', async (allowedHosts, message) => {
  const error = await lease({ allowedHosts }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error).toMatchObject({ message: expect.stringMatching(message) });
});

it.each([
  [
    'a proxy of the context',
    lease,
    { contextOptions: { proxy: { server: 'http://a.test' } } },
    /exclude each other/,
  ],
  [
    'WebDriver BiDi',
    (options: object) => puppeteer.leaseBrowser(pool, options),
    { protocol: 'bidi' },
    /allowedHosts can't limit a browser over WebDriver BiDi/,
  ],
] as const)('refuses %s before anything is sent', async (_what, call, options, message) => {
  await expect(call({ ...options, allowedHosts: 'a.test' })).rejects.toThrow(message);
});

it('refuses a session with a profile before the callback, and releases the browser', async () => {
  await using played = await PlayedLease.start();
  played.service.script('acquire', { status: 200, json: played.session({ profile: { id: 'logins' } }) });
  let isCalled = false;
  const { error, run } = await played.run(() => (isCalled = true), { allowedHosts: 'a.test' });
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect((error as Error).message).toMatch(/allowedHosts and the profile of the session exclude each other/);
  expect({ isCalled, released: run?.released, received: played.browser.received }).toEqual({
    isCalled: false,
    released: 'destroyed',
    received: [],
  });
});

it('sends nothing about WebRTC to a service that is not on this machine', async () => {
  await using played = await PlayedLease.start();
  await played.run(() => {}, { allowedHosts: 'a.test' });
  const [request] = played.service.requests;
  expect(Object.keys(request!.body!).toSorted()).toEqual(['acquire_timeout_seconds', 'tags']);
});

it('reads the hosts from the environment, and refuses a function that has no limit', async () => {
  vi.stubEnv('BROWSER_POOL_ALLOWED_HOSTS', 'a test');
  await expect(lease({})).rejects.toThrow(/^BROWSER_POOL_ALLOWED_HOSTS has the rule 'a test'/);
  vi.stubEnv('BROWSER_POOL_ALLOWED_HOSTS', 'a.test');
  await expect(playwright.attachBrowser('any', {})).rejects.toThrow(/demands/);
  const proxy = { server: 'http://a.test' };
  await expect(lease({ allowedHosts: undefined, contextOptions: { proxy } })).rejects.toThrow(
    /exclude each other/,
  );
  vi.stubEnv('BROWSER_POOL_ALLOWED_HOSTS', undefined);
  vi.stubEnv('BROWSER_POOL_EXPOSE_NETWORK', '::1');
  await expect(lease({})).rejects.toThrow(/^BROWSER_POOL_EXPOSE_NETWORK has the rule '::1'/);
  vi.unstubAllEnvs();
});
