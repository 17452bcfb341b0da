import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool, InvalidOptionError, leaseBrowser } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { rejection } from '../pool/support.js';
import { FakeService } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { PlayedLease } from '../support/played-lease.js';

let service: FakeService;
let pool: BrowserPool;

beforeAll(async () => {
  service = await FakeService.start();
  pool = new BrowserPool('test', service.options);
});

afterAll(async () => {
  await pool.close();
  await service.close();
});

describe('refuses before anything is sent', () => {
  it.each([
    ['name', { name: 'a b' }],
    ['tags', { tags: { a: 1 } }],
    ['startUrl', { startUrl: 'example' }],
    ['acquireTimeout', { acquireTimeout: -1 }],
    ['acquireTimeout', { acquireTimeout: '5000' }],
    ['pollTimeout', { pollTimeout: true }],
    ['retry.factor', { retry: { factor: -1 } }],
    ['retry.tries', { retry: { tries: 3 } }],
    ['connectTimeout', { connectTimeout: 0 }],
    ['connectAttempts', { connectAttempts: 1.5 }],
    ['connectAttempts', { connectAttempts: 0 }],
    ['protocol', { protocol: 'webDriverBiDi' }],
    ['context', { context: 'fresh' }],
    ['timeout', { timeout: Number.NaN }],
    ['release', { release: 'keep' }],
    ['releaseTimeout', { releaseTimeout: null }],
    ['replays', { replays: 'video' }],
    ['recording', { recording: {} }],
    ['recording', { replays: 'list', recording: { frameRate: 5 } }],
    ['recording.frameRate', { replays: 'record', recording: { frameRate: 0.5 } }],
    ['recording.frameRate', { replays: 'record', recording: { frameRate: 61 } }],
    ['recording.maxDuration', { replays: 'record', recording: { maxDuration: '1 min' } }],
    ['recording.fps', { replays: 'record', recording: { fps: 5 } }],
    ['recording', { replays: 'record', recording: true }],
    ['replaysTimeout', { replaysTimeout: -5 }],
    ['connectOptions', { connectOptions: 'slow' }],
    ['exposeNetwork', { exposeNetwork: 'http://localhost:3000' }],
    ['exposeNetwork', { exposeNetwork: ['localhost'] }],
    ['releaseOnCrash', { releaseOnCrash: 'yes' }],
    ['awaitRelease', { awaitRelease: 0 }],
    ['signal', { signal: new AbortController() }],
    ['onEvent', { onEvent: 'log' }],
    ['acquireTimout', { acquireTimout: 5000 }],
    ['downloads.folder', { downloads: '' }],
    ['downloads', { downloads: true }],
    ['downloads.folder', { downloads: { maxSize: 1 } }],
    ['downloads.maxSize', { downloads: { folder: 'a', maxSize: '1 GB' } }],
    ['downloads.timeout', { downloads: { folder: 'a', timeout: 0 } }],
    ['artifacts', { artifacts: 'folder' }],
    ['artifacts.folder', { artifacts: {} }],
    ['artifacts.folder', { artifacts: { folder: '' } }],
    ['artifacts.on', { artifacts: { folder: 'a', on: 'never' } }],
    ['artifacts.traces', { artifacts: { folder: 'a', traces: true } }],
    ['artifacts.trace', { artifacts: { folder: 'a', trace: true } }],
  ])('the option %s when it is not allowed: %j', async (option, options) => {
    const error = await rejection(puppeteer.withPooledBrowser(pool, () => {}, options as never));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option });
    expect(error.message).toContain(option.split('.').at(-1));
    expect(service.requests).toEqual([]);
  });

  it.each<[string, object, string]>([
    ['an unknown option', { timeOut: 1 }, 'leaseBrowser has no option timeOut.'],
    ['the timeout of a callback', { timeout: 5 }, 'leaseBrowser has no option timeout.'],
    ['another choice', { context: 'fresh' }, "context must be one of 'default', 'new', not 'fresh'."],
    [
      'an object',
      { acquireTimeout: Object.create(null) },
      'a number of milliseconds above 0, not an object.',
    ],
    ['an array', { acquireTimeout: [1] }, 'a number of milliseconds above 0, not an array.'],
    ['a text', { acquireTimeout: '5' }, "a number of milliseconds above 0, not '5'."],
  ])('%s, and says what is allowed', async (_what, options, message) => {
    await expect(puppeteer.leaseBrowser(pool, options)).rejects.toThrow(message);
    expect(service.requests).toEqual([]);
  });

  it.each([
    ['viewport', 'contextOptions: { viewport }'],
    ['storageState', 'contextOptions: { storageState }'],
    ['proxyServer', 'contextOptions: { proxyServer }'],
    ['headers', 'connectOptions: { headers }'],
    ['slowMo', 'connectOptions: { slowMo }'],
    ['defaultViewport', 'connectOptions: { defaultViewport }'],
    ['token', 'new BrowserPool(idOrName, { token })'],
    ['headless', 'The pool starts its browsers'],
    // Otherwise a similar name is suggested.
    ['acquireTimeuot', 'Did you mean acquireTimeout?'],
  ])('the option %s, and says where it belongs', async (name, advice) => {
    const error = await rejection(leaseBrowser(pool, { connector: plainConnector, [name]: 1 }));
    expect(error.message).toContain(`leaseBrowser has no option ${name}. `);
    expect(error.message).toContain(advice);
    expect(service.requests).toEqual([]);
  });

  it('Playwright over BiDi, with the reason and the alternatives', async () => {
    const bidi = { protocol: 'bidi' } as never;
    for (const call of [
      playwright.withPooledBrowser(pool, () => {}, bidi),
      playwright.leaseBrowser(pool, bidi),
    ]) {
      await expect(call).rejects.toThrow(/no public API for WebDriver BiDi connections.*Puppeteer/s);
    }
    expect(service.requests).toEqual([]);
  });

  it('a callback that is not a function, and a value that is not a pool', async () => {
    await expect(playwright.withPooledBrowser(pool, 'fn' as never)).rejects.toThrow(/must be a function/);
    for (const none of [5, null, undefined, {}])
      expect(await rejection(playwright.withPooledBrowser(none as never, () => {}))).toMatchObject({
        option: 'pool',
        message: expect.stringMatching(/BrowserPool, or the id or name/) as string,
      });
    await expect(playwright.withPooledBrowser('no-service', () => {})).rejects.toThrow(
      /BROWSER_POOL_BASE_URL/,
    );
    expect(service.requests).toEqual([]);
  });
});

/** The caller's own copy of the library. */
const own = () => Promise.reject(new Error('my own copy'));
const ownPlaywright = { chromium: { connectOverCDP: own }, name: 'n' };
const ownPuppeteer = { puppeteer: { connect: own }, name: 'n' };

it.each<[string, string, (pool: BrowserPool) => Promise<unknown>]>([
  ['playwright', 'withPooledBrowser', (at) => playwright.withPooledBrowser(at, () => {}, ownPlaywright)],
  ['playwright', 'leaseBrowser', (at) => playwright.leaseBrowser(at, ownPlaywright)],
  ['puppeteer', 'withPooledBrowser', (at) => puppeteer.withPooledBrowser(at, () => {}, ownPuppeteer)],
  ['puppeteer', 'leaseBrowser', (at) => puppeteer.leaseBrowser(at, ownPuppeteer)],
])("%s: %s uses the caller's own copy of the library, and passes on all other options", async (...row) => {
  const [library, , call] = row;
  await using played = await PlayedLease.start();
  const error = await rejection(call(played.pool));
  expect(error).toMatchObject({ name: 'ConnectError', cause: { message: 'my own copy' } });
  expect(error.message).toContain(library);
  expect(played.service.of('acquire').map(({ body }) => body?.['name'])).toEqual(['n', 'n']);
});
