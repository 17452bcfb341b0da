import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { BrowserPool, serveProxy, type ProxyOptions } from '../../../src/index.js';
import { browserbase, steel, type BrowserService } from '../../../src/services.js';
import { TOKEN, UNREACHABLE } from '../../support/fake-service.js';

afterEach(() => vi.unstubAllEnvs());

const newFile = () => join(mkdtempSync(join(tmpdir(), 'k-')), 'kept.json');
const poolOf = (service?: BrowserService) =>
  new BrowserPool('agents', {
    baseUrl: UNREACHABLE,
    token: TOKEN,
    ...(service && { service: service as BrowserService<never> }),
  });
const serve = (keepFile: string, options: ProxyOptions<never> = {}, pool = poolOf()) =>
  serveProxy(pool, { keepFile, lifetime: 60_000, ...options });

const DATES = { leasedAt: '2026-01-02T03:04:05.678Z', endsAt: '2126-01-02T03:04:05.678Z' };
const KEPT = { name: 'alice', sessionId: 'one', lease: 'l', pool: 'agents', service: 'kernel', ...DATES };
const textOf = (...browsers: object[]) => JSON.stringify({ format: 'pooled-browser-kept-1', browsers });

it('creates a file that only this user can read, without a lock after the end', async () => {
  const file = newFile();
  const proxy = await serve(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await proxy.close();
  expect(readdirSync(join(file, '..'))).toEqual(['kept.json']);
});

it('is used by one proxy at a time', async () => {
  const file = newFile();
  await using first = await serve(file);
  await expect(serve(file)).rejects.toMatchObject({
    code: 'ERR_INVALID_OPTION',
    option: 'keepFile',
    message: expect.stringMatching(/kept\.json is in use by process \d+ on .* stop the other one/),
  });
  await first.close();
  await using second = await serve(file);
  expect(second.counts.leased).toBe(0);
});

it('is free again if the proxy can not start', async () => {
  const file = newFile();
  await using other = await serveProxy(poolOf());
  await expect(serve(file, { port: Number(new URL(other.url).port) })).rejects.toThrow('port');
  await using proxy = await serve(file);
  expect(proxy.counts.leased).toBe(0);
});

it.each([
  ['no JSON', 'alice,one'],
  ['other JSON', '{"browsers":[]}'],
  ['an entry without a lease', textOf({ ...KEPT, lease: undefined })],
  ['an entry with an id that is a path', textOf({ ...KEPT, sessionId: '..' })],
  ['an entry whose end is no date', textOf({ ...KEPT, endsAt: 'soon' })],
])('is refused by its name and not changed if it has %s', async (_what, text) => {
  const file = newFile();
  writeFileSync(file, text, { mode: 0o600 });
  await expect(serve(file)).rejects.toThrow(`${file} has other content than browsers that a proxy kept`);
  expect(readFileSync(file, 'utf8')).toBe(text);
});

it('is refused if it has browsers of a pool that the proxy does not serve', async () => {
  const file = newFile();
  const text = textOf({ ...KEPT, pool: 'scrapers' });
  writeFileSync(file, text, { mode: 0o600 });
  await expect(serve(file)).rejects.toThrow(
    'has the browser "alice" of the pool "scrapers" at "kernel", which this proxy does not serve',
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
});

it('is refused if other users can read it, or if it is a symbolic link', async () => {
  const file = newFile();
  writeFileSync(file, textOf());
  chmodSync(file, 0o644);
  await expect(serve(file)).rejects.toThrow('can be used by other users (mode 644)');
  chmodSync(file, 0o600);
  const link = `${file}.link`;
  symlinkSync(file, link);
  await expect(serve(link)).rejects.toThrow('is a symbolic link, or no file');
});

it.each<[string, ProxyOptions<never>, BrowserService | undefined, string]>([
  ['no lifetime', { lifetime: Infinity }, undefined, 'needs the option lifetime'],
  ['share', { share: true }, undefined, 'with share all clients use one without'],
  ['allowedHosts', { allowedHosts: 'a.test' }, undefined, 'allowedHosts'],
  ['a service without a search', {}, browserbase(), "browserbase can't be asked for the browser of a lease"],
  [
    'so many tags that the service stores none of ours',
    { tags: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`t${at}`, ''])) },
    undefined,
    "kernel can't be asked",
  ],
])('is refused with %s, before anything is sent', async (_what, options, service, message) => {
  const file = newFile();
  await expect(serve(file, options, poolOf(service))).rejects.toThrow(message);
  expect(readdirSync(join(file, '..'))).toEqual([]);
});

it('is accepted with a service that sends whole sessions for its search', async () => {
  await using proxy = await serve(newFile(), {}, poolOf(steel()));
  expect(proxy.counts.leased).toBe(0);
});

it('is refused with browsers that end with this process', async () => {
  const pool = new BrowserPool('agents', { baseUrl: 'local' });
  await expect(serveProxy(pool, { keepFile: newFile(), lifetime: 1000 })).rejects.toThrow(
    'end with the process that uses them',
  );
});

it('has a secret of the user in the address, unless it is weak or there is none', async () => {
  const secret = 'a-secret-of-the-user_0123456789';
  vi.stubEnv('BROWSER_POOL_PROXY_SECRET', secret);
  await using proxy = await serveProxy(poolOf());
  expect(new URL(proxy.url).pathname).toBe(`/${secret}`);
  expect((await fetch(`${proxy.url}/json/version`)).status).toBe(200);
  expect((await fetch(`${proxy.url}x/json/version`)).status).toBe(404);
  vi.stubEnv('BROWSER_POOL_PROXY_SECRET', 'with/a/slash/0123456789');
  await expect(serveProxy(poolOf())).rejects.toMatchObject({
    option: 'BROWSER_POOL_PROXY_SECRET',
    message: expect.not.stringContaining('with/a/slash'),
  });
  await using open = await serveProxy(poolOf(), { secret: false });
  expect(new URL(open.url).pathname).toBe('/');
});
