import type { ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BrowserPool, type BrowserSession } from '../../src/index.js';
import { startLocalPool, type LocalPool } from '../../src/local.js';
import { withPooledBrowser } from '../../src/puppeteer.js';
import { kernel, type BrowserService } from '../../src/services.js';
import { hasFirefox, SKIPPED_WITHOUT_FIREFOX } from '../support/firefox.js';
import { SLOW_START } from '../support/program.js';
import { useSite } from '../support/site.js';
import { BUSY_WORKER, SITE_DATA } from '../support/site-data.js';

/** Requests whose response waits until the lease has ended. */
const held = new Set<ServerResponse>();
const requests: { url: string; headers: NodeJS.Dict<string | string[]> }[] = [];
const site = useSite(({ url = '', headers }, response) => {
  requests.push({ url, headers });
  const type = url.endsWith('.js') ? 'text/javascript' : 'text/html';
  if (url === '/endless') return response.writeHead(200, { 'content-type': type }).write('<p>');
  if (url.includes('file')) response.setHeader('content-disposition', 'attachment; filename=file');
  if (url === '/cached') response.setHeader('cache-control', 'max-age=1000');
  if (/cookie|held/.test(url)) response.setHeader('set-cookie', 'late=1; HttpOnly; Max-Age=3600');
  response.setHeader('content-type', type);
  if (url.startsWith('/held')) return held.add(response);
  return response.end(url.endsWith('.js') ? BUSY_WORKER : '<title>page</title><p>text');
});
const here = (path: string) => `${site.as('localhost')}/${path}`;
const requested = async (path: string) => {
  await expect.poll(() => requests.map(({ url }) => url)).toContain(path);
};
beforeEach(() => void requests.splice(0));

interface Leased {
  readonly page: Page;
  readonly browser: Browser;
}
type Leave = (lease: Leased) => Promise<unknown>;

const script =
  (text: string): Leave =>
  ({ page }) =>
    page.evaluate(`(async () => { ${text} })()`);
const onPageHide = (text: string) => script(`addEventListener('pagehide', () => { ${text} })`);
const inFrame =
  (text: string): Leave =>
  async ({ page }) => {
    await page.setContent(`<iframe src="${site.url}/frame"></iframe>`);
    await page.waitForFrame((frame) => frame.url().endsWith('/frame'));
    await page.frames()[1]!.evaluate(text);
  };
const download =
  (path: string): Leave =>
  async ({ page }) => {
    await page.evaluate(`document.body.innerHTML = '<a href=/${path} download>file</a>'`);
    await page.click('a');
    await requested(`/${path}`);
    await sleep(300);
  };
const STORE = `(async () => {
  localStorage.left = sessionStorage.left = window.name = '1';
  await caches.open('left');
  await new Promise((resolve) => { indexedDB.open('left').onsuccess = resolve; });
  await (await navigator.storage.getDirectory()).getFileHandle('left', { create: true });
})()`;

/** An extension without a script. */
async function installExtension({ browser }: Leased): Promise<void> {
  const manifest = {
    manifest_version: 2,
    name: 'left',
    version: '1',
    browser_specific_settings: { gecko: { id: 'left@example.com' } },
  };
  const folder = await mkdtemp(join(tmpdir(), 'extension-'));
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
  await browser.installExtension(folder).finally(() => rm(folder, { recursive: true }));
}

/** What leases leave. */
const LEFT = {
  'a cookie': script(`document.cookie = 'left=1; max-age=3600'`),
  'an HttpOnly cookie': ({ page }) => page.goto(here('cookie')),
  'a cookie that the library set': ({ browser }) =>
    browser.setCookie({ name: 'left', value: '1', domain: 'localhost' }),
  'cookies of two sites': async ({ page }) => (
    await page.goto(`${site.url}/cookie`),
    page.goto(here('cookie'))
  ),
  localStorage: script(`localStorage.left = '1'`),
  sessionStorage: script(`sessionStorage.left = '1'`),
  'a database': script(`await new Promise((done) => { indexedDB.open('left').onsuccess = done; })`),
  'a cache': script(`await (await caches.open('left')).put('/left', new Response('1'))`),
  'a file of the origin': script(
    `await (await navigator.storage.getDirectory()).getFileHandle('left', { create: true })`,
  ),
  'a service worker': script(
    `await navigator.serviceWorker.register('/a.js'); await navigator.serviceWorker.ready`,
  ),
  'a service worker that is still loading': async (lease) => (
    await script(`void navigator.serviceWorker.register('/held.js')`)(lease),
    requested('/held.js')
  ),
  'a shared worker': script(`new SharedWorker('/a.js')`),
  'a dedicated worker': script(`new Worker('/a.js')`),
  'the name of a window': script(`window.name = 'left'`),
  'the HTTP cache': script(`await (await fetch('/cached')).text()`),
  'data of a frame of another site': inFrame(STORE),
  'a permission': ({ browser }) =>
    browser.defaultBrowserContext().setPermission(site.as('localhost'), {
      permission: { name: 'geolocation' },
      state: 'granted',
    }),
  'an open page': async ({ browser }) => (await browser.newPage()).goto(here('left')),
  'a page in another context': async ({ browser }) =>
    (await (await browser.createBrowserContext()).newPage()).goto(here('left')),
  'a context without a page': ({ browser }) => browser.createBrowserContext(),
  'a page that is still loading': async ({ page }) => (
    void page.goto(here('endless')).catch(() => {}),
    requested('/endless')
  ),
  'a pop-up that opens a pop-up': script(`open('/frame').onpagehide = () => open('/frame')`),
  'a page that opens another when it is left': onPageHide(`open('/frame')`),
  'data that was written when the page was left': onPageHide(
    `localStorage.left = document.cookie = 'left=1'`,
  ),
  'a sendBeacon when the page was left': onPageHide(`navigator.sendBeacon('/held')`),
  'an open fetch with keepalive': async (lease) => (
    await script(`void fetch('/held/keep', { keepalive: true })`)(lease),
    requested('/held/keep')
  ),
  'an open sendBeacon': async (lease) => (
    await script(`navigator.sendBeacon('/held/beacon')`)(lease),
    requested('/held/beacon')
  ),
  'an open fetch': async (lease) => (
    await script(`void fetch('/held/plain')`)(lease),
    requested('/held/plain')
  ),
  'a WebSocket and an event stream': script(
    `new WebSocket('ws://' + location.host); new EventSource('/endless')`,
  ),
  'an open download': download('held/file'),
  'a download': download('file'),
  'a script that never ends': script(`setTimeout(() => { while (true); })`),
  'an open dialog': script(`setTimeout(() => alert('left'))`),
  'a page that asks before it closes': async (lease) => (
    await script(`onbeforeunload = (event) => event.preventDefault()`)(lease),
    lease.page.click('body')
  ),
  'a page that broke its own JavaScript': script(`Map = Promise = eval = undefined`),
  'a script for new documents': ({ page }) => page.evaluateOnNewDocument('window.left = 1'),
  'a user agent': ({ page }) => page.setUserAgent({ userAgent: 'left' }),
  'headers of requests': ({ page }) => page.setExtraHTTPHeaders({ 'x-left': '1' }),
  'a time zone': ({ page }) => page.emulateTimezone('Asia/Tokyo'),
  'a viewport': ({ page }) => page.setViewport({ width: 333, height: 333 }),
  'intercepted requests': async ({ page }) => (
    await page.setRequestInterception(true),
    page.on('request', (request) => void request.respond({ status: 200, body: 'left' }))
  ),
  'no network': ({ page }) => page.setOfflineMode(true),
  'an extension': installExtension,
  'a function for pages': ({ page }) => page.exposeFunction('left', () => 1),
} satisfies Record<string, Leave>;

/** `'either'`: destroyed if the browser needs too long. */
type Outcome = 'reused' | 'destroyed' | 'either';
type Group = readonly [outcome: Outcome, ...things: (keyof typeof LEFT)[]];

/**
 * One lease leaves all things of a group, each in a page of its own: the lease of a browser takes longer than the rest. A worker
 * is the last one, because its requests delay those of the pages.
 */
const OF_FIREFOX: readonly Group[] = [
  [
    'reused',
    'a cookie',
    'an HttpOnly cookie',
    'a cookie that the library set',
    'cookies of two sites',
    'localStorage',
    'sessionStorage',
    'a database',
    'a cache',
    'a file of the origin',
    'the HTTP cache',
  ],
  ['reused', 'the name of a window', 'a permission', 'a service worker'],
  ['reused', 'data of a frame of another site', 'a service worker that is still loading', 'a shared worker'],
  [
    'reused',
    'an open page',
    'a page in another context',
    'a context without a page',
    'a WebSocket and an event stream',
    'a dedicated worker',
  ],
  [
    'reused',
    'a page that is still loading',
    'an open fetch with keepalive',
    'an open sendBeacon',
    'an open fetch',
  ],
  [
    'reused',
    'data that was written when the page was left',
    'a sendBeacon when the page was left',
    'a page that asks before it closes',
    'a page that broke its own JavaScript',
  ],
  [
    'reused',
    'a script for new documents',
    'a user agent',
    'headers of requests',
    'a time zone',
    'a viewport',
    'intercepted requests',
    'no network',
    'a function for pages',
  ],
  ['reused', 'an open dialog'],
  ['reused', 'an open download'],
  ['destroyed', 'a download'],
  ['destroyed', 'an extension'],
  ['either', 'a pop-up that opens a pop-up'],
  ['either', 'a page that opens another when it is left'],
  ['either', 'a script that never ends'],
];

/** Chromium is cleaned by the commands of CDP, of which other tests show the rest. */
const OF_CHROMIUM: readonly Group[] = [
  [
    'reused',
    'cookies of two sites',
    'localStorage',
    'a permission',
    'an open page',
    'a page in another context',
    'a script for new documents',
    'a viewport',
  ],
  ['destroyed', 'a shared worker'],
  ['destroyed', 'an open download'],
];

const TABLE = { chromium: OF_CHROMIUM, firefox: OF_FIREFOX };

it('leaves each thing in Firefox', () => {
  const things = OF_FIREFOX.flatMap(([, ...group]) => group);
  expect(things.toSorted()).toEqual(Object.keys(LEFT).toSorted());
});

const LOOK = `(async () => ({
  ${SITE_DATA}
  permission: (await navigator.permissions.query({ name: 'geolocation' })).state,
  left: typeof window.left,
  userAgent: navigator.userAgent,
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  size: [innerWidth, innerHeight],
  isOnline: navigator.onLine,
  cached: await (await fetch('/cached')).text(),
}))()`;

/** What the library, two sites and their server see of the browser. */
async function look({ page, browser }: Leased) {
  requests.splice(0);
  const pages = await browser.pages();
  const first = {
    cookies: await browser.cookies(),
    pages: pages.map((one) => one.url()),
    contexts: browser.browserContexts().length,
  };
  const sites: unknown[] = [];
  for (const url of [here('look'), `${site.url}/look`]) {
    await page.goto(url);
    sites.push(await page.evaluate(LOOK));
  }
  const found = requests.flatMap(({ url, headers }) =>
    headers['x-left'] === undefined ? url : `${url}: left`,
  );
  return {
    ...first,
    sites,
    later: await browser.cookies(),
    requests: found.filter((url) => /look|cached/.test(url)),
  };
}

/** The session has no CDP URL. */
const ONLY_BIDI: BrowserService<BrowserSession> = {
  ...kernel,
  grant: (...args) => ({ ...kernel.grant(...args), cdpUrl: undefined }),
};

const PROTOCOL = { protocol: 'bidi' } as const;

describe.each(['chromium', 'firefox'] as const)('a service with only a bidiUrl, of %s', (browser) => {
  const isMissing = browser === 'firefox' && !hasFirefox;
  const title = `its browsers${isMissing ? SKIPPED_WITHOUT_FIREFOX : ''}`;
  // A destroyed browser is replaced.
  describe.skipIf(isMissing)(title, SLOW_START, () => {
    let local: LocalPool;
    let pool: BrowserPool;
    let found: Awaited<ReturnType<typeof look>>;
    beforeAll(async () => {
      local = await startLocalPool({ browser });
      const { baseUrl, token } = local;
      pool = new BrowserPool('default', { service: ONLY_BIDI, baseUrl, token });
      found = (await withPooledBrowser(pool, look, PROTOCOL)).value;
    });
    afterAll(async () => {
      await pool?.close();
      await local?.close();
    });

    it('has nothing in the beginning', () => {
      const nothing = {
        localStorage: [],
        caches: [],
        databases: [],
        files: [],
        workers: 0,
        permission: 'prompt',
      };
      expect(found).toMatchObject({
        cookies: [],
        pages: ['about:blank'],
        contexts: 1,
        sites: [nothing, nothing],
      });
    });

    it.each(TABLE[browser].map(([outcome, ...things]) => [things.join('; '), outcome, things] as const))(
      'after %s, the browser is %s, and the next lease finds nothing',
      async (_names, outcome, things) => {
        const left = await withPooledBrowser(
          pool,
          async (lease) => {
            for (const [index, thing] of things.entries()) {
              const page = index === 0 ? lease.page : await lease.browser.newPage();
              await page.goto(here('page'));
              await LEFT[thing]({ browser: lease.browser, page });
            }
          },
          PROTOCOL,
        );
        for (const response of held) response.end();
        held.clear();
        const { value } = await withPooledBrowser(pool, look, PROTOCOL);
        expect(value).toEqual(found);
        // On a busy machine, the cleaning can take too long.
        const isLate = left.cleanupErrors.some(({ cause }) => /respond within/.test(String(cause)));
        expect(left.released).toMatch(outcome === 'either' || isLate ? /reused|destroyed/ : outcome);
      },
    );
  });
});
