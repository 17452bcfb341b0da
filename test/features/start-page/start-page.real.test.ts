import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool, serveProxy } from '../../../src/index.js';
import { leaseSession } from '../../../src/calls/lease-browser.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { startBrowserless } from '../../support/browserless-server.js';
import { browserless } from '../../../src/services.js';
import { startChromium, type Chromium } from '../../support/chromium.js';
import { contractOf, ContractServer } from '../../support/contract-server.js';
import { TOKEN } from '../../support/fake-service.js';
import { useLocalPool } from '../../support/local.js';
import { Site } from '../../support/site.js';

/** The part of a page that both libraries have. */
interface Page {
  goto(url: string): Promise<unknown>;
  title(): Promise<string>;
  url(): string;
}
/** What the callback's page shows, and the title of the page that the callback opens there. */
const visitNext = async ({ page }: { page: Page }) => {
  const before = page.url();
  await page.goto(`${site.url}/next`);
  return [before, await page.title()];
};
const titleOf = ({ page }: { page: Page }) => page.title();
/** Both libraries, by what they have in common. */
const LIBRARIES = [playwright, puppeteer].map(
  ({ withPooledBrowser }) => withPooledBrowser as typeof playwright.withPooledBrowser,
);

let browser: Chromium;
let site: Site;
/** The paths that the browser has requested. */
let requested: string[] = [];
beforeAll(async () => {
  browser = await startChromium();
  site = await Site.open(({ url }, response) => {
    requested.push(url!);
    if (url === '/silent') return;
    if (url === '/moved') return void response.writeHead(302, { location: '/start' }).end();
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'start=1' });
    response.end(`<title>${url}</title>`);
  });
});
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** A pool of a service that opens no URL. */
async function open(name: string) {
  requested = [];
  const server = await ContractServer.start(contractOf(name));
  server.browserUrl = browser.url;
  const { service } = contractOf(name);
  const pool = new BrowserPool<object>('mine', { service, baseUrl: server.baseUrl, token: TOKEN });
  const dispose = async () => {
    await pool.close();
    await server[Symbol.asyncDispose]();
  };
  return { server, pool, [Symbol.asyncDispose]: dispose };
}

describe('at a service that opens no URL, the callback begins at startUrl', () => {
  it.each(['steel', 'browserbase', 'selenium grid'])('with both libraries, at %s', async (name) => {
    await using used = await open(name);
    const options = { startUrl: `${site.url}/start`, connectTimeout: Number.POSITIVE_INFINITY };
    for (const withPooledBrowser of LIBRARIES) {
      const run = await withPooledBrowser(used.pool, titleOf, options);
      expect(run).toMatchObject({ value: '/start', cleanupErrors: [] });
    }
    const own = { ...options, context: 'new' } as const;
    expect(await playwright.withPooledBrowser(used.pool, titleOf, own)).toMatchObject({ value: '/start' });
    expect(requested.filter((path) => path === '/start')).toHaveLength(3);
  });

  it('where the browser begins with the connection', async () => {
    await using server = await startBrowserless({ browserUrl: browser.url });
    const service = browserless({ baseUrl: server.baseUrl });
    await using pool = new BrowserPool('mine', { service, token: TOKEN });
    const { value } = await playwright.withPooledBrowser(pool, titleOf, { startUrl: `${site.url}/start` });
    expect(value).toBe('/start');
  });

  it('with leaseBrowser, in each task of a job, for the client of a proxy, and without a library', async () => {
    await using used = await open('steel');
    const startUrl = `${site.url}/start`;
    const held = await playwright.leaseBrowser(used.pool, { startUrl });
    expect(await held.page.title()).toBe('/start');
    await held.reconnect();
    await held.release();
    const titles: unknown[] = [];
    for await (const outcome of playwright.mapPooledBrowsers(used.pool, [1, 2], titleOf, { startUrl }))
      titles.push(outcome.status === 'fulfilled' && outcome.value);
    expect(titles).toEqual(['/start', '/start']);
    await using proxy = await serveProxy(used.pool, { startUrl });
    const { chromium } = await import('playwright-core');
    expect(await firstTitle(await chromium.connectOverCDP(proxy.url))).toBe('/start');
    const session = await leaseSession(used.pool, { startUrl });
    expect(await firstTitle(await chromium.connectOverCDP(session.context.grant.cdpUrl!))).toBe('/start');
    await session.end({ status: 'ok' });
  });

  it.each([
    ['can not be reached', () => 'http://127.0.0.1:2/', 'start-url-failed'],
    ['is redirected', () => `${site.url}/moved`, undefined],
  ])('also if the URL %s', async (_what, urlOf, type) => {
    await using used = await open('steel');
    const startUrl = urlOf();
    const failures: unknown[] = [];
    const onEvent = (event: { type: string }) => {
      if (event.type === 'start-url-failed') failures.push(event);
    };
    for (const withPooledBrowser of LIBRARIES) {
      failures.length = 0;
      const run = await withPooledBrowser(used.pool, () => 'called', { startUrl, onEvent });
      expect(run).toMatchObject({ value: 'called', released: 'destroyed' });
      expect(failures).toMatchObject(type ? [{ type, url: startUrl }] : []);
    }
  });

  it.each([
    ['can not be reached', () => 'http://127.0.0.1:2/', 30_000],
    ['does not respond', () => `${site.url}/silent`, 3000],
  ])('if the URL %s, nothing interrupts the next navigation', async (_what, urlOf, connectTimeout) => {
    await using used = await open('steel');
    const options = { startUrl: urlOf(), connectTimeout };
    for (const withPooledBrowser of LIBRARIES) {
      for (const context of ['default', 'new'] as const) {
        const { value } = await withPooledBrowser(used.pool, visitNext, { ...options, context });
        expect(value[1]).toBe('/next');
      }
    }
  });

  it('if the URL can not be reached, nothing interrupts the next navigation of a task, or of a client', async () => {
    await using used = await open('steel');
    const startUrl = 'http://127.0.0.1:2/';
    const tasks = playwright.mapPooledBrowsers(used.pool, [1, 2, 3], visitNext, { startUrl });
    for await (const outcome of tasks) if (outcome.status === 'rejected') throw outcome.reason;
    const { chromium } = await import('playwright-core');
    const proxyEvents: unknown[] = [];
    const onEvent = (event: unknown) => void proxyEvents.push(event);
    await using proxy = await serveProxy(used.pool, { startUrl, onEvent });
    const client = await chromium.connectOverCDP(proxy.url);
    expect(await visitNext({ page: client.contexts()[0]!.pages()[0]! })).toEqual(['about:blank', '/next']);
    expect(proxyEvents).toContainEqual(expect.objectContaining({ type: 'start-url-failed', url: startUrl }));
    await client.close();
  });

  it('pool.acquire has no connection, and refuses start_url before anything is sent', async () => {
    await using used = await open('steel');
    const acquiring = used.pool.acquire({ start_url: `${site.url}/start` });
    await expect(acquiring).rejects.toMatchObject({ option: 'start_url', message: /steel opens no URL/ });
    expect(used.server.requests).toEqual([]);
  });
});

describe('at a service that opens the URL', () => {
  const used = useLocalPool();

  it.each(LIBRARIES)(
    'the page is not loaded again, but opened in a new context',
    async (withPooledBrowser) => {
      requested = [];
      const startUrl = `${site.url}/start`;
      const pages = () => requested.filter((path) => path === '/start');
      const run = await withPooledBrowser(used.pool, titleOf, { startUrl });
      expect([run.value, pages()]).toEqual(['/start', ['/start']]);
      const own = await withPooledBrowser(used.pool, titleOf, { startUrl, context: 'new' });
      expect(own).toMatchObject({ value: '/start', released: 'reused' });
      // What the service opened in the browser's own context is removed, too.
      const cookies = await playwright.withPooledBrowser(used.pool, ({ context }) =>
        context.cookies(site.url),
      );
      expect(cookies.value).toEqual([]);
    },
  );
});

async function firstTitle(client: Browser): Promise<string> {
  const title = await client.contexts()[0]!.pages()[0]!.title();
  await client.close();
  return title;
}
