import CDP from 'chrome-remote-interface';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BrowserPool, serveProxy, type PoolProxy, type ProxyEvent } from '../../src/index.js';
import { kernel, type BrowserService, type BrowserSession } from '../../src/services.js';
import { Chromedriver, describeWithChromedriver } from '../support/chromedriver.js';
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

it('is a debugging port of one browser with share, whose requests are answered as Chromium does', async () => {
  proxy = await serveProxy(used.pool, { share: true, onClient: (event) => events.push(event) });
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(proxy.url + path, { method });
    return {
      status: response.status,
      text: await response.text(),
      type: response.headers.get('content-type'),
    };
  };
  const json = async (path: string, method?: string) => JSON.parse((await ask(path, method)).text) as unknown;
  expect(await json('/json/version')).toEqual({
    Browser: expect.stringMatching(/^Chrome\/\d+\.\d+/) as string,
    'Protocol-Version': '1.3',
    'User-Agent': expect.stringContaining('Mozilla') as string,
    'V8-Version': expect.stringMatching(/^\d+\./) as string,
    'WebKit-Version': expect.stringMatching(/^537\.36 \(/) as string,
    webSocketDebuggerUrl: webSocketUrl(),
  });
  expect(await ask('/json/version', 'HEAD')).toMatchObject({ status: 200, text: '' });
  const opened = (await json(`/json/new?${encodeURIComponent(titled('new'))}`, 'PUT')) as { id: string };
  const address = `${webSocketUrl()}/devtools/page/${opened.id}`;
  expect(opened).toMatchObject({ type: 'page', webSocketDebuggerUrl: address });
  for (const path of ['/json', '/json/list'])
    expect(await json(path), path).toContainEqual(
      expect.objectContaining({ id: opened.id, url: titled('new') }),
    );
  const { port, pathname } = new URL(proxy.url);
  const how = { port: Number(port), alterPath: (path: string) => pathname + path, target: opened.id };
  expect(await titleOverCdp('over its socket', how)).toBe('over its socket');
  expect(await ask(`/json/activate/${opened.id}`)).toMatchObject({ status: 200, text: 'Target activated' });
  expect(await ask(`/json/close/${opened.id}`)).toMatchObject({ status: 200, text: 'Target is closing' });
  expect(await ask('/json/close/nothing')).toMatchObject({
    status: 404,
    text: 'No such target id: nothing\n',
  });
  expect(await ask('/json/new')).toMatchObject({ status: 405 });
  await proxy.close();
  expect(events.filter(({ type }) => type === 'leased')).toHaveLength(1);
  expect(released()).toEqual(['reused']);
});

describeWithChromedriver('chromedriver', () => {
  it('drives one browser of the pool by debuggerAddress, with share and without a secret', async () => {
    proxy = await serveProxy(used.pool, {
      share: true,
      secret: false,
      onClient: (event) => events.push(event),
    });
    await using driver = await Chromedriver.start();
    const command = async (path: string, body?: object, method = body ? 'POST' : 'GET') => {
      const response = await fetch(`${driver.url}/session${path}`, {
        method,
        ...(body && { body: JSON.stringify(body) }),
      });
      return ((await response.json()) as { value: unknown }).value;
    };
    const options = { debuggerAddress: new URL(proxy.url).host };
    const capabilities = { alwaysMatch: { browserName: 'chrome', 'goog:chromeOptions': options } };
    const session = await command('', { capabilities });
    expect(session).toMatchObject({ sessionId: expect.any(String) as string });
    const at = `/${(session as { sessionId: string }).sessionId}`;
    await command(`${at}/url`, { url: titled('by chromedriver') });
    expect(await command(`${at}/title`)).toBe('by chromedriver');
    await command(`${at}/window/new`, { type: 'tab' });
    expect(await command(`${at}/window/handles`)).toHaveLength(2);
    await command(at, undefined, 'DELETE');
    await proxy.close();
    expect(events.filter(({ type }) => type === 'leased')).toHaveLength(1);
    expect(released()).toEqual(['reused']);
  });
});
