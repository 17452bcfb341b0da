import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  BrowserPool,
  InvalidOptionError,
  MissingLibraryError,
  withPooledBrowser,
  type Connector,
} from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { FakeService } from '../support/fake-service.js';

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
    ['releaseOnCrash', { releaseOnCrash: 'yes' }],
    ['awaitRelease', { awaitRelease: 0 }],
    ['signal', { signal: new AbortController() }],
    ['onEvent', { onEvent: 'log' }],
    ['acquireTimout', { acquireTimout: 5000 }],
  ])('the option %s when it is not allowed', async (option, options) => {
    const error = await puppeteer
      .withPooledBrowser(pool, () => {}, options as never)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option });
    expect((error as Error).message).toContain(option.split('.').at(-1));
    expect(service.requests).toEqual([]);
  });

  it('an unknown option, with a suggestion, and a value that is not one of the choices', async () => {
    const unknown = { timeOut: 1 } as never;
    await expect(puppeteer.withPooledBrowser(pool, () => {}, unknown)).rejects.toThrow(
      'withPooledBrowser has no option timeOut. Did you mean timeout?',
    );
    await expect(puppeteer.leaseBrowser(pool, unknown)).rejects.toThrow(/leaseBrowser has no option timeOut/);
    await expect(puppeteer.leaseBrowser(pool, { context: 'fresh' } as never)).rejects.toThrow(
      "context must be one of 'default', 'new', not 'fresh'.",
    );
  });

  it('a value that has no short text, and describes it', async () => {
    const bare = Object.create(null) as never;
    for (const [acquireTimeout, shown] of [
      [bare, 'an object'],
      [[1], 'an array'],
      ['5', "'5'"],
    ]) {
      await expect(puppeteer.leaseBrowser(pool, { acquireTimeout } as never)).rejects.toThrow(
        `acquireTimeout must be a number of milliseconds above 0, not ${shown}.`,
      );
    }
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

  it('the option timeout of leaseBrowser, which has no callback', async () => {
    const error = await playwright
      .leaseBrowser(pool, { timeout: 5 } as never)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option: 'timeout' });
    expect(service.requests).toEqual([]);
  });

  it('a callback that is not a function, and a value that is not a pool', async () => {
    await expect(playwright.withPooledBrowser(pool, 'fn' as never)).rejects.toThrow(/must be a function/);
    await expect(playwright.withPooledBrowser(5 as never, () => {})).rejects.toThrow(
      /BrowserPool, or the id or name/,
    );
    await expect(playwright.withPooledBrowser('no-service', () => {})).rejects.toThrow(
      /BROWSER_POOL_BASE_URL/,
    );
    expect(service.requests).toEqual([]);
  });
});

it('reports a missing automation library with the command that installs it', async () => {
  const missing: Connector = {
    ...playwright.playwright(),
    load: () => Promise.reject(new MissingLibraryError('playwright-core')),
  };
  service.script('acquire', { status: 204, delay: 200 });
  const running = withPooledBrowser(pool, () => {}, { connector: missing });
  await expect(running).rejects.toThrow('npm install playwright-core');
});

it('accepts the name of a pool at the service of the environment', async () => {
  vi.stubEnv('BROWSER_POOL_BASE_URL', service.baseUrl);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', 'token-of-the-environment');
  service.script('acquire', { status: 404, json: { code: 'not_found', message: 'no pool' } });
  await expect(playwright.withPooledBrowser('by-name', () => {})).rejects.toMatchObject({ status: 404 });
  expect(service.requests.at(-1)).toMatchObject({
    path: '/browser_pools/by-name/acquire',
    headers: { authorization: 'Bearer token-of-the-environment' },
  });
});
