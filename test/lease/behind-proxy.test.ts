import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  BrowserPool,
  leaseBrowser,
  withPooledBrowser,
  type BrowserPoolOptions,
  type PoolConnectionError,
  type RunEvent,
} from '../../src/index.js';
import { cdp } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { behindProxy, CREDENTIALS } from '../support/behind-proxy.js';
import { expectNoSecrets } from '../support/collected.js';
import { session, TOKEN } from '../support/fake-service.js';
import { ForwardProxy } from '../support/forward-proxy.js';
import { plainConnector } from '../support/plain-connector.js';
import { hasOpenSsl } from '../support/self-signed.js';

const RUN = { connector: plainConnector, replays: 'off', release: 'reuse', connectAttempts: 1 } as const;
it.runIf(hasOpenSsl).each([false, true])(
  'sends requests, WebSockets and downloads through a proxy with a password (at an https address: %s), and trusts the authority of the option ca',
  async (isProxyEncrypted) => {
    const { proxy, service, ca, poolWith } = await behindProxy({
      isEncrypted: true,
      isProxyEncrypted,
      credentials: CREDENTIALS,
    });
    const pool = poolWith({ proxy: proxy.url, ca });
    const events: RunEvent[] = [];
    const run = () =>
      withPooledBrowser(pool, () => 'value', { ...RUN, onEvent: (event) => events.push(event) });
    expect(await run()).toMatchObject({ value: 'value', released: 'reused', cleanupErrors: [] });
    expect(await run()).toMatchObject({ value: 'value', released: 'reused' });
    service.script('download', { status: 200, text: 'video', headers: { 'content-type': 'video/mp4' } });
    const path = join(await mkdtemp(join(tmpdir(), 'proxy-')), 'video.mp4');
    await pool.downloadReplay('session-1', 'replay-1', path);
    expect(await readFile(path, 'utf8')).toBe('video');
    expect(new Set(proxy.requested)).toEqual(new Set(['service.test:443', 'browser.test:443']));
    expectNoSecrets(pool, ...events);
  },
);

it.runIf(hasOpenSsl)('goes through the proxy with TLS while nock lets no connection through', async () => {
  const { default: nock } = await import('nock');
  onTestFinished(() => {
    nock.enableNetConnect();
    nock.restore();
  });
  nock.disableNetConnect();
  const { proxy, ca, poolWith } = await behindProxy({ isEncrypted: true });
  const pool = poolWith({ proxy: proxy.url, ca });
  const run = await withPooledBrowser(pool, () => 'value', RUN);
  expect(run).toMatchObject({ value: 'value', released: 'reused', cleanupErrors: [] });
  expect(new Set(proxy.requested)).toEqual(new Set(['service.test:443', 'browser.test:443']));
});

it.each<[string, BrowserPoolOptions, Record<string, string>]>([
  ['in HTTP_PROXY', {}, { HTTP_PROXY: 'proxy' }],
  ['in http_proxy', {}, { http_proxy: 'proxy', HTTPS_PROXY: 'http://127.0.0.1:2' }],
  ['in the option, whatever the environment says', { proxy: 'proxy' }, { NO_PROXY: '*' }],
])('leases a browser through the proxy %s', async (_place, settings, environment) => {
  const { proxy, poolWith } = await behindProxy();
  for (const [name, value] of Object.entries(environment))
    vi.stubEnv(name, value.replace(/^proxy$/, proxy.url));
  const pool = poolWith(settings.proxy ? { proxy: proxy.url } : {});
  expect(await withPooledBrowser(pool, () => 'value', RUN)).toMatchObject({ value: 'value' });
  expect(new Set(proxy.requested)).toEqual(new Set(['service.test:80', 'browser.test:80']));
});

it('connects to loopback without the proxy', async () => {
  const { proxy, service, browser, poolWith } = await behindProxy();
  vi.stubEnv('HTTP_PROXY', proxy.url);
  const json = session({ cdp_ws_url: browser.url });
  service.script('acquire', { status: 200, json });
  const pool = poolWith({ baseUrl: service.baseUrl, proxy: proxy.url });
  expect(await withPooledBrowser(pool, () => 'value', RUN)).toMatchObject({ value: 'value' });
  expect(proxy.requested).toEqual([]);
});

it('reads the address of a debugging port through the proxy', async () => {
  const { proxy, browser } = await behindProxy();
  vi.stubEnv('HTTP_PROXY', proxy.url);
  await using pool = new BrowserPool('pool', { service: cdp('http://browser.test:9222'), insecure: true });
  const { error } = await withPooledBrowser(pool, () => 'value', RUN).then(
    () => ({ error: undefined }),
    (error: Error) => ({ error }),
  );
  // The simulated browser has no such page.
  expect(error?.message).toContain('http://browser.test:9222/json/version has no answer (status 426)');
  expect(browser.dialled).toBe(0);
  expect(new Set(proxy.requested)).toEqual(new Set(['browser.test:9222']));
});

/** The error of an acquire request. */
async function refusal(proxy: string, address = 'http://service.test') {
  await using pool = new BrowserPool('pool', { baseUrl: address, token: TOKEN, insecure: true, proxy });
  const error = await rejection<PoolConnectionError>(pool.acquire());
  expectNoSecrets(error);
  expect(error).toMatchObject({ name: 'PoolConnectionError', code: 'ERR_POOL_UNREACHABLE' });
  return error;
}

it('says what to set if the proxy needs a password, or refuses it, and shows no password', async () => {
  await using proxy = await ForwardProxy.start({ hosts: {}, credentials: CREDENTIALS });
  const address = proxy.url.replace(/\/\/.*@/, '//');
  const message = (what: string) =>
    `The service at http://service.test could not be reached: the proxy ${address} ${what} in the option proxy, or in HTTPS_PROXY.`;
  expect(await refusal(address)).toMatchObject({
    isPermanent: true,
    message: message('requires a user name and a password (status 407). Add them to its URL'),
  });
  expect(await refusal(address.replace('//', '//ada:canary-wrong@'))).toMatchObject({
    isPermanent: true,
    message: message('does not accept the user name and the password in its URL (status 407). Correct them'),
  });
});

it('reports a proxy that refuses a host, and one that can not be reached', async () => {
  await using proxy = await ForwardProxy.start({ hosts: {} });
  expect(await refusal(proxy.url, 'http://service.test:8080')).toMatchObject({
    isPermanent: true,
    message: expect.stringContaining(`${proxy.url} refused to connect to service.test:8080 (status 403).`),
  });
  await proxy.die();
  expect(await refusal(proxy.url)).toMatchObject({
    isPermanent: false,
    message: expect.stringMatching(/the proxy http:\S+ could not be reached: connect ECONNREFUSED/),
  });
});

it('reports the browser as lost if the proxy dies, and connects again through a proxy that is back', async () => {
  const { proxy, poolWith } = await behindProxy();
  const pool = poolWith({ proxy: proxy.url });
  const lost = leaseBrowser(pool, RUN);
  const { signal } = await lost;
  const events: RunEvent[] = [];
  const reconnecting = await leaseBrowser(pool, {
    ...RUN,
    reconnect: 'eager',
    onEvent: (event) => events.push(event),
  });
  await proxy.die();
  await expect.poll(() => signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ name: 'BrowserLostError', reason: 'dropped' });
  await expect.poll(() => events.map(({ type }) => type)).toContain('connect-failed');
  await proxy.listen();
  await expect.poll(() => events.map(({ type }) => type)).toContain('reconnected');
  expect(await reconnecting.use(() => 'value')).toBe('value');
  for (const lease of [await lost, reconnecting])
    expect(await lease.release()).toMatchObject({ released: expect.stringMatching(/reused|destroyed/) });
});
