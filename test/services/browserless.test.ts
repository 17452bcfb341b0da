import { expect, it } from 'vitest';
import { BrowserPool, leaseBrowser, withPooledBrowser } from '../../src/index.js';
import { browserless, cdp } from '../../src/services.js';
import { startBrowserless } from '../support/browserless-server.js';
import { TOKEN, UNREACHABLE } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { expectNoSecrets } from '../support/collected.js';
import { rejection } from '../pool/support.js';

const poolOf = ({ baseUrl }: { baseUrl: string }, token = TOKEN) =>
  new BrowserPool('mine', { service: browserless({ baseUrl }), token });
const options = { connector: plainConnector, retry: { minTimeout: 5, maxTimeout: 50 } };

it('waits while the service refuses a connection, and never holds two browsers on one slot', async () => {
  await using server = await startBrowserless();
  await using pool = poolOf(server);
  const runs = await Promise.all(
    [1, 2, 3, 4].map(() => withPooledBrowser(pool, ({ session }) => session.id, options)),
  );
  expect(runs.map(({ released }) => released)).toEqual(Array(4).fill('destroyed'));
  expect(server.most()).toBe(1);
  expect(new Set(server.urls.map(({ searchParams }) => searchParams.get('trackingId')))).toEqual(
    new Set(runs.map(({ value }) => value)),
  );
  for (const run of runs) expectNoSecrets(run);
});

it('paces the connections of callers that wait, and each gets its browser', async () => {
  await using server = await startBrowserless();
  await using pool = poolOf(server);
  const waiting = { ...options, retry: undefined };
  const held = await leaseBrowser(pool, waiting);
  const order: number[] = [];
  const runs = [1, 2, 3, 4, 5, 6].map((number) =>
    withPooledBrowser(pool, () => void order.push(number), waiting),
  );
  await expect.poll(() => server.refused()).toBeGreaterThan(6);
  const before = performance.now();
  const refused = server.refused();
  await expect.poll(() => server.refused()).toBeGreaterThan(refused + 2);
  // Without a pace there are hundreds in a second.
  expect((server.refused() - refused) / (performance.now() - before)).toBeLessThan(6 / 1000);
  await held.release();
  await Promise.all(runs);
  expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  // One place for one caller after the other: each has at most two refusals.
  expect(server.urls).toHaveLength(7);
});

it('waits for a service that refuses connections, as for one that restarts', async () => {
  // The system assigns no port below 32,768: no other test gets this one meanwhile.
  const port = 20_000 + (process.pid % 10_000);
  const first = await startBrowserless({ port });
  await using pool = poolOf(first);
  await (await leaseBrowser(pool, options)).release();
  await first[Symbol.asyncDispose]();
  const events: string[] = [];
  const onEvent = (event: { type: string }) => void events.push(event.type);
  const waiting = { ...options, unreachableTimeout: 50, onEvent };
  const run = withPooledBrowser(pool, ({ session }) => session.id, waiting);
  await expect.poll(() => events.filter((type) => type === 'waiting').length).toBeGreaterThan(5);
  await using second = await startBrowserless({ port });
  expect((await run).released).toBe('destroyed');
  expect(second.urls).toHaveLength(1);
});

it.each(['502 Bad Gateway', 'reset'])(
  'waits for a service whose connections get a %s, as while it restarts',
  async (fault) => {
    await using server = await startBrowserless();
    await using pool = poolOf(server);
    server.faults.push(...Array<string>(8).fill(fault));
    const run = await withPooledBrowser(pool, () => 'value', { ...options, connectAttempts: 1 });
    expect(run.value).toBe('value');
    expect(server.faults).toEqual([]);
    // An error of the service itself can last.
    server.faults.push('500 Internal Server Error');
    const error = await rejection(withPooledBrowser(pool, () => {}, { ...options, connectAttempts: 1 }));
    expect(error).toMatchObject({ name: 'ConnectError', status: 500 });
  },
);

it.each([
  ['a service', browserless({ baseUrl: UNREACHABLE })],
  ['a debugging port', cdp(UNREACHABLE)],
])('fails after unreachableTimeout if %s was never reached', async (_what, service) => {
  await using pool = new BrowserPool<object>('mine', { service, token: TOKEN });
  const error = await rejection(withPooledBrowser(pool, () => {}, { ...options, unreachableTimeout: 100 }));
  expect(error).toMatchObject({
    name: 'PoolConnectionError',
    code: 'ERR_POOL_UNREACHABLE',
    isPermanent: true,
  });
  expect(error.message).toContain('unreachableTimeout');
});

it('fails with AcquireTimeoutError when the wait for a connection is over, and says why', async () => {
  await using server = await startBrowserless();
  await using pool = poolOf(server);
  const held = await leaseBrowser(pool, options);
  const error = await rejection(withPooledBrowser(pool, () => {}, { ...options, acquireTimeout: 100 }));
  expect(error).toMatchObject({ name: 'AcquireTimeoutError', cause: { name: 'ConnectError', status: 429 } });
  expectNoSecrets(error);
  await held.release();
});

it('names the time limit of the service, and its option, when the service closed the connection', async () => {
  await using server = await startBrowserless();
  await using pool = poolOf(server);
  const run = withPooledBrowser(pool, () => new Promise(() => {}), options);
  await expect.poll(() => server.active()).toBe(1);
  server.cut();
  const error = await rejection(run);
  expect(error).toMatchObject({ name: 'BrowserLostError' });
  expect(error.message).toContain('browserless({ timeout: 300_000 })');
});

it('fails after connectAttempts with a wrong token, and a lost browser is not reconnected', async () => {
  await using server = await startBrowserless();
  await using wrong = poolOf(server, 'canary-wrong-token');
  const error = await rejection(withPooledBrowser(wrong, () => {}, options));
  expect(error).toMatchObject({ name: 'ConnectError', status: 401 });
  expectNoSecrets(error);
  await using pool = poolOf(server);
  const held = await leaseBrowser(pool, { ...options, reconnect: 'eager' });
  expect(await rejection(held.detach())).toMatchObject({ name: 'InvalidOptionError' });
  expect((await held.release()).released).toBe('destroyed');
});

it('a token function that fails ends the call, and one that hangs ends with it', async () => {
  await using server = await startBrowserless();
  const { baseUrl } = server;
  const poolWith = (token: () => Promise<string>) =>
    new BrowserPool('mine', { service: browserless({ baseUrl }), token });
  const failing = poolWith(() => Promise.reject(new Error('no token today')));
  expect(await rejection(withPooledBrowser(failing, () => {}, options))).toMatchObject({
    message: 'no token today',
  });
  await failing.close();
  const hanging = poolWith(() => new Promise(() => {}));
  const late = rejection(withPooledBrowser(hanging, () => {}, { ...options, acquireTimeout: 100 }));
  expect(await late).toMatchObject({ name: 'AcquireTimeoutError' });
  await hanging.close();
});

it('passes launch options and a token function', async () => {
  await using server = await startBrowserless();
  const { baseUrl } = server;
  const service = browserless({
    baseUrl,
    path: '/chrome',
    launch: { args: ['--a'] },
    timeout: 5000,
    parameters: { blockAds: true },
  });
  await using pool = new BrowserPool('mine', { service, token: async () => TOKEN });
  await withPooledBrowser(pool, () => {}, options);
  const [url] = server.urls;
  expect(url!.pathname).toBe('/chrome');
  expect(url!.searchParams.get('launch')).toBe('{"args":["--a"]}');
  expect(url!.searchParams.get('timeout')).toBe('5000');
  expect(url!.searchParams.get('blockAds')).toBe('true');
});
