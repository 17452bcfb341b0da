import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  BrowserPool,
  withPooledBrowser,
  type Connector,
  type RunEvent,
  type RunOptions,
} from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { playwright } from '../../src/playwright.js';
import { puppeteer } from '../../src/puppeteer.js';
import * as drivers from '../support/drivers.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';

const used = useLocalPool();

const DRIVERS: readonly [name: string, connector: Connector<object>, options: RunOptions][] = [
  ['Playwright', playwright(), {}],
  ['Puppeteer over CDP', puppeteer(), {}],
  ['Puppeteer over BiDi', puppeteer(), { protocol: 'bidi' }],
];

it.concurrent.each(DRIVERS)('%s: a browser is released whose end fails and hangs', async (...driver) => {
  const [, real, options] = driver;
  const connector: Connector<object> = {
    ...real,
    connect: async (request) => ({
      ...(await real.connect(request)),
      cleanup: () => Promise.reject(new Error('mine')),
      disconnect: () => new Promise<never>(() => {}),
    }),
  };
  const run = await withPooledBrowser(used.pool, () => 'value', { ...options, connector });
  expect(run).toMatchObject({ value: 'value', released: 'destroyed' });
  expect(run.cleanupErrors.map(({ name }) => name)).toEqual(['CleanupError', 'CleanupError']);
});

interface Emitter {
  on(event: string, listener: () => void): void;
}
interface AnyBrowser extends Emitter {
  contexts?(): Emitter[];
}

/** A whole Chromium would load an icon at any time. */
const PAGE = '<link rel=icon href=data:,>a page';
const site = useSite((_request, response) => {
  response.setHeader('content-type', 'text/html').end(PAGE);
});

it.each(drivers.DRIVERS)('$name: a call shows nothing of the cleaning of its browser', async ({ run }) => {
  await using local = await startLocalPool({ pools: [{ name: 'new', size: 1 }] });
  const pool = new BrowserPool('new', { baseUrl: local.baseUrl, token: local.token });
  const folder = await mkdtemp(join(tmpdir(), 'artifacts-'));
  const seen: string[] = [];
  const onEvent = (event: RunEvent) => void seen.push(event.type);
  const visit = async (lease: drivers.AnyLease) => {
    await lease.page.goto(site.url);
    const browser = lease.browser as unknown as AnyBrowser;
    const page = lease.page as unknown as Emitter;
    browser.on('targetcreated', () => seen.push('target'));
    browser.contexts?.()[0]!.on('page', () => seen.push('page'));
    for (const event of ['request', 'response', 'requestfailed', 'console', 'popup'])
      page.on(event, () => seen.push(event));
    seen.splice(0);
  };
  const own = { exposeNetwork: '<loopback>', context: 'default' as const, connectTimeout: 30_000.5 };
  const options = { ...own, downloads: folder, onEvent };
  const artifacts = { folder, on: 'always' as const, screenshot: false, console: true };
  // Only a new browser must begin to count.
  for (const lease of ['first', 'second']) {
    const result = await run(pool, visit, { ...options, artifacts, replays: 'off' });
    const nothing = { cleanupErrors: [], downloads: [], artifacts: [], refusedHosts: [] };
    expect(result, lease).toMatchObject({ ...nothing, released: 'reused' });
    expect(seen).toEqual(['callback-ended', 'artifacts-collected', 'cleaned-up', 'released', 'ended']);
  }
  await pool.close();
});
