import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { expect, it, vi } from 'vitest';
import { BrowserPool, runOf, serveProxy, type RunEvent } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { CdpRelay, type Change } from '../../support/cdp-relay.js';
import { OTHER_HOSTS, useJudges } from '../../support/host-judges.js';
import { look, useLocalPool } from '../../support/local.js';
import { Site } from '../../support/site.js';

const used = useLocalPool({ args: [OTHER_HOSTS] });
const { site, allowedHosts, kinds, loadAll, reached } = useJudges();
/** Sends any command. */
const sessionWith = async (context: BrowserContext, page: Page) =>
  (await context.newCDPSession(page)) as unknown as {
    send(method: string, params?: object): Promise<object>;
  };

it.each([
  ['Playwright', playwright],
  ['Puppeteer', puppeteer],
])('%s: no kind of load reaches a host that is not allowed', async (_name, library) => {
  const { withPooledBrowser } = library as typeof puppeteer;
  const options = { allowedHosts: allowedHosts() };
  const load = async ({ page }: puppeteer.PuppeteerHandles) => {
    await page.goto(site.url);
    await loadAll(page);
    return page.title();
  };
  const { value, released } = await withPooledBrowser(used.pool, load, options);
  expect({ value, released, reached: reached() }).toEqual({
    value: 'allowed',
    released: expect.any(String),
    reached: [],
  });
});

it('a client of the proxy reaches no other host, neither in a context with a proxy of its own', async () => {
  await using proxy = await serveProxy(used.pool, { allowedHosts: allowedHosts() });
  const browser = await chromium.connectOverCDP(proxy.url);
  const session = await browser.newBrowserCDPSession();
  const { targetInfos } = await session.send('Target.getTargets');
  expect(targetInfos.map(({ type }) => type)).toEqual(['page']);
  // The context of the whole browser has no limit.
  const { browserContextId } = await session.send('Target.createBrowserContext', {
    proxyServer: 'direct://',
    proxyBypassList: '*',
  });
  for (const method of ['exposeDevToolsProtocol', 'setRemoteLocations', 'sendMessageToTarget'] as const)
    await expect(session.send(`Target.${method}`)).rejects.toThrow('is not available with allowedHosts');
  for (const method of ['Runtime.queryObjects', 'Debugger.pause'] as const)
    await expect(session.send(method)).rejects.toThrow('is not available with allowedHosts');
  const other = { browserContextId: 'of another client' };
  await expect(session.send('Target.createTarget', { url: 'about:blank', ...other })).rejects.toThrow(
    'context',
  );
  // The last two are hosts on Windows.
  for (const url of [
    'chrome://inspect',
    'file://host/file',
    'file:////host/file',
    String.raw`file:///\\host\file`,
  ])
    await expect(session.send('Target.createTarget', { url }), url).rejects.toThrow('allowedHosts');
  await session.send('Target.createTarget', { url: `${site.url}/to?http://a.other.test`, browserContextId });
  const context = await browser.newContext({ proxy: { server: 'direct://', bypass: '*' } });
  const page = await context.newPage();
  await page.goto(site.url);
  const ofPage = await sessionWith(context, page);
  await loadAll(page, ofPage);
  // A JavaScript world of a client has no WebRTC, either.
  const { frameTree } = (await ofPage.send('Page.getFrameTree')) as { frameTree: { frame: { id: string } } };
  const world = await ofPage.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
  const { executionContextId: contextId } = world as { executionContextId: number };
  const expression = 'typeof globalThis.RTCPeerConnection?.prototype?.createOffer';
  expect(await ofPage.send('Runtime.evaluate', { expression, contextId })).toMatchObject({
    result: { value: 'undefined' },
  });
  // What a page opens without naming a context is in that of the lease.
  const { targetId } = (await ofPage.send('Target.createTarget', { url: 'about:blank' })) as {
    targetId: string;
  };
  const { targetInfo } = await session.send('Target.getTargetInfo', { targetId });
  expect(targetInfo.browserContextId).toBe(targetInfos[0]!.browserContextId);
  await browser.close();
  expect(reached()).toEqual([]);
});

it('a client of the debugging port reads why a page of the browser is not opened', async () => {
  await using proxy = await serveProxy(used.pool, { allowedHosts: allowedHosts(), share: true });
  const response = await fetch(`${proxy.url}/json/new?chrome://version`, { method: 'PUT' });
  expect({ status: response.status, text: await response.text() }).toEqual({
    status: 500,
    text: 'chrome://version can not be opened with allowedHosts.\n',
  });
});

/** One request of each kind of worker, two of a dedicated one, and WebTransport. */
const LOADS_OF_WORKERS = `(async () => {
  new SharedWorker('/worker?shared-worker.other.test');
  await navigator.serviceWorker.register('/worker?service-worker.other.test', { scope: '/nowhere/' });
  await new WebTransport('https://transport.other.test/').ready.catch(() => {});
  const socket = "new WebSocket('ws://worker.other.test/').onclose = () => postMessage('done')";
  const worker = new Worker(URL.createObjectURL(new Blob(["fetch('http://worker.other.test/', { mode: 'no-cors' });" + socket])));
  await new Promise((resolve) => (worker.onmessage = resolve));
})()`;

it('reports each host that was refused, and explains the error of a navigation', async () => {
  const hosts: string[] = [];
  const onEvent = (event: RunEvent) => void (event.type === 'request-refused' && hosts.push(event.host));
  const go = async ({ page }: playwright.PlaywrightHandles) => {
    expect(page.url()).toBe(`${site.url}/start`);
    await page.evaluate(
      `Promise.allSettled([fetch('http://a.other.test:81/'), fetch('http://a.other.test:81/?secret')])`,
    );
    await page.evaluate(LOADS_OF_WORKERS);
    const all = ['worker', 'shared-worker', 'service-worker', 'transport'].map(
      (name) => `${name}.other.test`,
    );
    await expect.poll(() => hosts).toEqual(expect.arrayContaining(all));
    await page.goto('http://user:secret@b.other.test/');
  };
  const options = { allowedHosts: allowedHosts(), startUrl: `${site.url}/start`, onEvent };
  const error = await playwright
    .withPooledBrowser(used.pool, go, options)
    .catch((reason: unknown) => reason as Error);
  expect(String(error)).toContain(
    `The browser may reach only allowedHosts: '${allowedHosts()}'. To allow b.other.test, add it to the option.`,
  );
  expect(hosts[0]).toBe('a.other.test:81');
  expect(hosts.at(-1)).toBe('b.other.test');
  expect(runOf(error)?.refusedHosts.toSorted((one, other) => one.host.localeCompare(other.host))).toEqual([
    { host: 'a.other.test:81', count: 2 },
    { host: 'b.other.test', count: 1 },
    { host: 'service-worker.other.test', count: 1 },
    { host: 'shared-worker.other.test', count: 1 },
    { host: 'transport.other.test', count: 1 },
    { host: 'worker.other.test', count: 2 },
  ]);
  // Nothing of the limit remains.
  const { value } = await playwright.withPooledBrowser(used.pool, async ({ page, browser }) => {
    await page.goto(site.url);
    return [await page.evaluate('typeof RTCPeerConnection'), browser.contexts().length];
  });
  expect(value).toEqual(['function', 1]);
});

it('what a page logs is garbage, as without the option', async () => {
  const log = async ({ page }: puppeteer.PuppeteerHandles) => {
    await page.goto(site.url);
    const session = await page.createCDPSession();
    // 40 MB; the console of a page keeps the last 1000 messages.
    await page.evaluate(
      'for (let index = 0; index < 10_000; index++) console.log({ large: new Array(1000).fill(index) })',
    );
    const megabytes = async () => {
      await session.send('HeapProfiler.collectGarbage');
      return (await session.send('Runtime.getHeapUsage')).usedSize / 1_000_000;
    };
    await expect.poll(megabytes).toBeLessThan(15);
  };
  await puppeteer.withPooledBrowser(used.pool, log, {
    allowedHosts: allowedHosts(),
    exposeNetwork: 'localhost:9',
  });
});

/** A service worker that answers with the class of WebSockets that it had when it began: exposeNetwork puts a nameless proxy in its place. */
const WORKER = `
  const body = String(WebSocket);
  onactivate = (event) => event.waitUntil(clients.claim());
  onfetch = (event) => event.request.url.endsWith('/made') && event.respondWith(new Response(body));`;

it.each([
  ['allowedHosts', (host: string) => ({ allowedHosts: host }), true],
  ['exposeNetwork', (host: string) => ({ exposeNetwork: host }), false],
  ['both', (host: string) => ({ allowedHosts: host, exposeNetwork: host }), false],
])('%s: a service worker that was stopped begins again', async (_name, optionsFor, isNative) => {
  await using app = await Site.open(({ url }, response) =>
    url === '/worker'
      ? response.writeHead(200, { 'content-type': 'text/javascript' }).end(WORKER)
      : response.writeHead(200, { 'content-type': 'text/html' }).end('<title>app</title>'),
  );
  const visit = async ({ page }: puppeteer.PuppeteerHandles) => {
    await page.goto(app.url);
    const controlled = 'new Promise((resolve) => (navigator.serviceWorker.oncontrollerchange = resolve))';
    await page.evaluate(
      `Promise.all([${controlled}, navigator.serviceWorker.register('/worker')]).then(() => {})`,
    );
    const session = await page.createCDPSession();
    await session.send('ServiceWorker.enable');
    await session.send('ServiceWorker.stopAllWorkers');
    return page.evaluate<[], () => Promise<string>>(async () => (await fetch('/made')).text());
  };
  const { value } = await puppeteer.withPooledBrowser(used.pool, visit, optionsFor(new URL(app.url).host));
  expect(value.startsWith('function WebSocket()')).toBe(isNative);
});

/** What a service can leave out of a command that it passes on, or does not know. */
const LEFT_OUT: [what: string, change: Change, why: string][] = [
  [
    'the proxy of a context',
    (text) => [text.replace(/"proxyServer":"[^"]*"/, '"proxyServer":"direct://"')],
    'a request to an unknown host ended with',
  ],
  [
    'scripts of new documents, and bindings',
    (text) => [text.replace('delete globalThis', 'globalThis').replaceAll('RTCPeerConnection"', 'Other"')],
    'its pages have WebRTC',
  ],
  [
    'contexts',
    (text) => [text.replace('Target.createBrowserContext', 'Target.createNothing')],
    "'Target.createNothing' wasn't found",
  ],
];

it.each(LEFT_OUT)(
  'refuses a service that leaves out %s, before the callback',
  async (_what, toBrowser, why) => {
    await look(used.pool, async ({ cdp_ws_url }) => {
      await using relay = await CdpRelay.start(() => cdp_ws_url);
      relay.changes = () => ({ toBrowser });
      const pool = new BrowserPool('any', { service: relay.service() });
      const callback = vi.fn();
      await expect(playwright.withPooledBrowser(pool, callback, { allowedHosts: 'a.test' })).rejects.toThrow(
        `allowedHosts can not be set on this browser: ${why}`,
      );
      expect(callback).not.toHaveBeenCalled();
      await pool.close();
    });
  },
);

// Last: some loads are repeated after the lease.
it('each kind of load reaches another host without the option', async () => {
  await playwright.withPooledBrowser(used.pool, async ({ page, context }) => {
    await page.goto(site.url);
    await loadAll(page, await sessionWith(context, page));
    const all = new Set<string>();
    // New pages need some time on a busy machine.
    await expect.poll(() => reached().reduce((set, kind) => set.add(kind), all)).toEqual(new Set(kinds()));
  });
});
