import CDP from 'chrome-remote-interface';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BrowserPool, serveProxy, type PoolProxy, type ProxyEvent } from '../../src/index.js';
import { kernel, type BrowserService, type BrowserSession } from '../../src/services.js';
import { titled, useLocalPool } from '../support/local.js';

const used = useLocalPool();
let proxy: PoolProxy;
let events: ProxyEvent[];

const start = async (secret = true, pool: BrowserPool<object> = used.pool) =>
  (proxy = await serveProxy(pool, {
    secret,
    onClient: (event) => events.push(event),
  }));

beforeEach(() => void (events = []));
afterEach(() => proxy.close());

const webSocketUrl = () => proxy.url.replace('http', 'ws');
/** What happened to each browser. */
const released = () => events.flatMap((event) => (event.type === 'released' ? event.summary.released : []));

/** Opens a page in a browser of the proxy, and returns its title. Each is a way that people paste from a manual. */
const CLIENTS: Record<string, (title: string) => Promise<string | undefined>> = {
  'Playwright, by http URL': async (title) => {
    const browser = await chromium.connectOverCDP(proxy.url);
    const page = browser.contexts()[0]!.pages()[0]!;
    return visit(page, title).finally(() => browser.close());
  },
  'Puppeteer, by WebSocket URL': async (title) => {
    const browser = await puppeteer.connect({ browserWSEndpoint: webSocketUrl() });
    const page = await browser.newPage();
    return visit(page, title).finally(() => browser.close());
  },
  'Puppeteer over BiDi': async (title) => {
    const browserWSEndpoint = `${webSocketUrl()}/session`;
    const browser = await puppeteer.connect({ protocol: 'webDriverBiDi', browserWSEndpoint });
    const page = await browser.newPage();
    return visit(page, title).finally(() => browser.close());
  },
  'chrome-remote-interface, with the secret in its paths': async (title) => {
    const { port, pathname } = new URL(proxy.url);
    return titleOverCdp(title, { port: Number(port), alterPath: (path) => pathname + path });
  },
};

const BY_PORT: typeof CLIENTS = {
  'Puppeteer, by browserURL': async (title) => {
    const browser = await puppeteer.connect({ browserURL: proxy.url });
    const [page] = await browser.pages();
    return visit(page!, title).finally(() => browser.disconnect());
  },
  'chrome-remote-interface, by port': (title) =>
    titleOverCdp(title, { port: Number(new URL(proxy.url).port) }),
};

async function visit(
  page: { goto(url: string): Promise<unknown>; title(): Promise<string> },
  title: string,
): Promise<string> {
  await page.goto(titled(title));
  return page.title();
}

async function titleOverCdp(title: string, options: CDP.Options): Promise<string | undefined> {
  const client = await CDP({ host: '127.0.0.1', ...options });
  await client.Page.enable();
  const loaded = client.Page.loadEventFired();
  await client.Page.navigate({ url: titled(title) });
  await loaded;
  const { result } = await client.Runtime.evaluate({ expression: 'document.title' });
  await client.close();
  return result.value as string;
}

it.each([
  ['with its secret', true, CLIENTS],
  ['by port, without a secret', false, BY_PORT],
])('serves real clients %s, each with a browser that is clean again', async (_how, secret, clients) => {
  await start(secret);
  for (const [index, connect] of Object.values(clients).entries())
    expect(await connect(`client ${index}`)).toBe(`client ${index}`);
  const count = Object.keys(clients).length;
  await expect.poll(released).toEqual(Array.from({ length: count }, () => 'reused'));
  expect(used.local.stats().leased).toBe(0);
});

const ending: BrowserService<BrowserSession> = {
  ...kernel,
  grant: (...args) => ({ ...kernel.grant(...args), endsWithConnection: true }),
};

it.each([
  ['that lasts', kernel],
  ['that ends with its connection', ending],
])(
  'keeps the pages of a named browser %s, but nothing that its client set, and nothing for the next lease',
  async (_how, service) => {
    const { baseUrl, token } = used.local;
    await using pool = new BrowserPool<object>('test', { baseUrl, token, service });
    await start(true, pool);
    const browserWSEndpoint = `${webSocketUrl()}/alice`;
    const first = await puppeteer.connect({ browserWSEndpoint });
    const page = await first.newPage();
    // Without its client, this page would wait for ever.
    await page.setRequestInterception(true);
    page.on('request', (request) => void request.continue());
    await page.goto(titled('first'));
    await first.disconnect();
    await expect.poll(() => proxy.counts.connected).toBe(0);
    const again = await chromium.connectOverCDP(`${proxy.url}/alice`);
    const pages = again.contexts()[0]!.pages();
    expect(await Promise.all(pages.map((one) => one.title()))).toContain('first');
    await pages.at(-1)!.goto(titled('second'));
    await again.close();
    await proxy.close();
    expect(released()).toEqual(['reused']);
    await start();
    const other = await chromium.connectOverCDP(proxy.url);
    expect(
      other
        .contexts()[0]!
        .pages()
        .map((one) => one.url()),
    ).toEqual(['about:blank']);
    await other.close();
  },
);
