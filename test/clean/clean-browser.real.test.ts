import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { withPooledBrowser } from '../../src/playwright.js';
import { withPooledBrowser as withPuppeteer } from '../../src/puppeteer.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';
import { BUSY_WORKER, SITE_DATA } from '../support/site-data.js';

/** Requests whose response waits until the lease has ended. */
const held = new Set<ServerResponse>();
const paths = new Set<string>();
const site = useSite(({ url = '' }, response) => {
  paths.add(url);
  if (url === '/endless') return response.writeHead(200, { 'content-type': 'text/html' }).write('<p>');
  if (url === '/file') response.setHeader('content-disposition', 'attachment; filename=file');
  response.setHeader('content-type', url.endsWith('.js') ? 'text/javascript' : 'text/html');
  if (!/^\/(frame|favicon.ico)?$/.test(url)) response.setHeader('set-cookie', 'late=1; HttpOnly');
  if (url.startsWith('/held')) return held.add(response);
  return response.end(url.endsWith('.js') ? BUSY_WORKER : '<title>page</title><p>text');
});
beforeEach(() => paths.clear());

const used = useLocalPool();

const requested = async (path: string) => {
  await expect.poll(() => paths).toContain(path);
};

/** What a site and the library can see of earlier leases. */
const LOOK = `(async () => ({
  ${SITE_DATA}
}))()`;

const STORE = `(async () => {
  document.cookie = 'left=1';
  localStorage.left = sessionStorage.left = window.name = '1';
  await caches.open('left');
  await new Promise((resolve) => { indexedDB.open('left').onsuccess = resolve; });
  await (await navigator.storage.getDirectory()).getFileHandle('left', { create: true });
})()`;

const NOTHING = {
  localStorage: [],
  sessionStorage: [],
  name: '',
  caches: [],
  databases: [],
  files: [],
  workers: 0,
};

const run =
  (script: string) =>
  (page: Page): Promise<unknown> =>
    page.evaluate(`{${script}}; 0`);
const onPageHide = (script: string) => run(`addEventListener('pagehide', () => { ${script} })`);

/** A frame of another site in the page. */
const inFrame = (script: string) => async (page: Page) => {
  await page.setContent(`<iframe src="${site.as('localhost')}/frame"></iframe>`);
  await page.waitForLoadState();
  await page.frames()[1]!.evaluate(script);
};

/** Clicks on a link to a file whose response waits. */
const download = async (page: Page) => {
  await page.evaluate(`document.body.innerHTML = '<a href=/held/file download>file</a>'`);
  await page.click('a');
  await requested('/held/file');
};

/**
 * What no other test leaves behind, each in a page of its own: test/lease/nothing-carries-over.real.test.ts fills a context with each
 * library.
 */
const REUSED: Readonly<Record<string, ((page: Page) => Promise<unknown>)[]>> = {
  'data of a frame of another site, cookies of two sites, and requests and data of the moment when pages were left':
    [
      inFrame(STORE),
      async (page) => (await page.goto(`${site.as('localhost')}/a`), page.goto(`${site.url}/a`)),
      onPageHide(`localStorage.left = document.cookie = 'left=1'`),
      onPageHide(`navigator.sendBeacon('/a')`),
      run(`fetch('/a', { keepalive: true })`),
    ],
  'a page that is still loading, pages that open others, and open requests of pages': [
    (page) => page.goto(`${site.url}/endless`, { waitUntil: 'commit' }),
    // A pop-up that opens a pop-up.
    run(`open('/frame').onpagehide = () => open('/frame')`),
    onPageHide(`open('/frame')`),
    async (page) => (await run(`fetch('/held/plain')`)(page), requested('/held/plain')),
    run(`new WebSocket('ws://' + location.host); new EventSource('/endless')`),
  ],
};

/** One request of each kind that outlives its page, while it is open and when its page is left: Chromium counts them together. */
const DESTROYED: [what: string, leave: (page: Page) => Promise<unknown>][] = [
  ['a sendBeacon when the page was left', onPageHide(`navigator.sendBeacon('/held')`)],
  [
    'a sendBeacon when a frame of another site was left',
    inFrame(`addEventListener('pagehide', () => navigator.sendBeacon('/held')), 0`),
  ],
  [
    'an open fetch with keepalive',
    async (page) => (await run(`fetch('/held/fetch', { keepalive: true })`)(page), requested('/held/fetch')),
  ],
  ['an open download', download],
  [
    'a service worker whose script is still loading',
    async (page) => {
      await run(`navigator.serviceWorker.register('/held/worker.js')`)(page);
      await requested('/held/worker.js');
    },
  ],
  ['a shared worker', run(`new SharedWorker('/a.js')`)],
];

/** What a lease leaves, and what the next one finds, after all responses have arrived. */
async function lookAfter(...leaving: ((page: Page) => Promise<unknown>)[]) {
  const { released } = await withPooledBrowser(used.pool, async ({ context, page }) => {
    for (const [index, leave] of leaving.entries()) {
      const one = index === 0 ? page : await context.newPage();
      await one.goto(site.url);
      await leave(one);
    }
  });
  for (const response of held) response.end();
  held.clear();
  await sleep(100);
  const { value } = await withPooledBrowser(used.pool, async ({ context, page }) => {
    const first = { cookies: await context.cookies(), pages: context.pages().map((one) => one.url()) };
    const sites: unknown[] = [];
    for (const url of [site.url, site.as('localhost')]) {
      await page.goto(url);
      sites.push(await page.evaluate(LOOK));
    }
    return { ...first, sites, later: await context.cookies() };
  });
  return { released, ...value };
}

const FOUND = { cookies: [], pages: ['about:blank'], sites: [NOTHING, NOTHING], later: [] };

it.each(Object.entries(REUSED))(
  'after %s, the browser is reused, and the next lease finds nothing',
  async (_what, leaving) => {
    expect(await lookAfter(...leaving)).toEqual({ released: 'reused', ...FOUND });
  },
);

it.each(DESTROYED)('after %s that may still write, the browser is destroyed', async (_what, leave) => {
  expect(await lookAfter(leave)).toEqual({ released: 'destroyed', ...FOUND });
});

// The browser is destroyed if the worker does not end in time.
it('after a service worker that writes all the time, the next lease finds nothing', async () => {
  const register = `navigator.serviceWorker.register('/a.js').then(() => navigator.serviceWorker.ready, 0)`;
  expect(await lookAfter((page) => page.evaluate(register))).toMatchObject(FOUND);
});

/** The screen and the window of a page. */
const view = ({ page }: { page: { evaluate(script: string): Promise<unknown> } }) =>
  page.evaluate('[screen.width, outerWidth, outerHeight, screenX, screenY].join()');
let newView: unknown;
beforeAll(async () => {
  const { value } = await withPooledBrowser(used.pool, view);
  newView = value;
});

it('a browser in which a lease left a changed screen is destroyed', async () => {
  const { released, cleanupErrors } = await withPooledBrowser(used.pool, async ({ page, context }) => {
    const client = await context.newCDPSession(page);
    const { screenInfos } = await client.send('Emulation.getScreenInfos');
    const screenId = screenInfos[0]!.id;
    await client.send('Emulation.updateScreen', { screenId, width: 640, height: 480 });
  });
  expect(released).toBe('destroyed');
  expect(cleanupErrors[0]?.message).toContain('a changed screen');
  expect((await withPooledBrowser(used.pool, view)).value).toBe(newView);
});

const bounds = async (page: Page) => {
  const client = await page.context().newCDPSession(page);
  const { windowId } = await client.send('Browser.getWindowForTarget');
  await client.send('Browser.setWindowBounds', { windowId, bounds: { width: 533, height: 444 } });
};

it.each<[how: string, released: string, use: () => Promise<object>]>([
  [
    'Playwright resized the window',
    'destroyed',
    () => withPooledBrowser(used.pool, ({ page }) => bounds(page)),
  ],
  [
    'Playwright resized the window of another context',
    'reused',
    () =>
      withPooledBrowser(used.pool, async ({ browser }) =>
        bounds(await (await browser.newContext()).newPage()),
      ),
  ],
  [
    'Puppeteer opened another window',
    'destroyed',
    () =>
      withPuppeteer(used.pool, async ({ browser }) => {
        const windowBounds = { width: 611, height: 422 };
        await browser.newPage({ type: 'window', windowBounds });
      }),
  ],
  [
    'Puppeteer maximized the window over WebDriver BiDi',
    'destroyed',
    () =>
      withPuppeteer(
        used.pool,
        async ({ browser, page }) => {
          await browser.setWindowBounds(await page.windowId(), { windowState: 'maximized' });
        },
        { protocol: 'bidi' },
      ),
  ],
])('after a lease in which %s, that of the next lease is as it was', async (_how, released, use) => {
  expect(await use()).toMatchObject({ released });
  expect((await withPooledBrowser(used.pool, view)).value).toBe(newView);
});
