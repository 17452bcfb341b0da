import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { withPooledBrowser } from '../../src/playwright.js';
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

/** What no other test leaves behind: test/lease/nothing-carries-over.real.test.ts fills a context with each library. */
const CASES: Record<'reused' | 'destroyed', [what: string, leave: (page: Page) => Promise<unknown>][]> = {
  reused: [
    ['data of a frame of another site', inFrame(STORE)],
    [
      'cookies of two sites',
      async (page) => (await page.goto(`${site.as('localhost')}/a`), page.goto(`${site.url}/a`)),
    ],
    ['a page that is still loading', (page) => page.goto(`${site.url}/endless`, { waitUntil: 'commit' })],
    ['a pop-up that opens a pop-up', run(`open('/frame').onpagehide = () => open('/frame')`)],
    ['a page that opens another when it is left', onPageHide(`open('/frame')`)],
    [
      'data that was written when the page was left',
      onPageHide(`localStorage.left = document.cookie = 'left=1'`),
    ],
    ['a sendBeacon when the page was left', onPageHide(`navigator.sendBeacon('/a')`)],
    ['an open fetch', async (page) => (await run(`fetch('/held/plain')`)(page), requested('/held/plain'))],
    ['a fetch with keepalive', run(`fetch('/a', { keepalive: true })`)],
    [
      'a WebSocket and an event stream',
      run(`new WebSocket('ws://' + location.host); new EventSource('/endless')`),
    ],
  ],
  destroyed: [
    ['a sendBeacon when the page was left', onPageHide(`navigator.sendBeacon('/held')`)],
    ['a fetch with keepalive when the page was left', onPageHide(`fetch('/held', { keepalive: true })`)],
    [
      'a sendBeacon when a frame of another site was left',
      inFrame(`addEventListener('pagehide', () => navigator.sendBeacon('/held')), 0`),
    ],
    [
      'an open fetch with keepalive',
      async (page) => (
        await run(`fetch('/held/fetch', { keepalive: true })`)(page),
        requested('/held/fetch')
      ),
    ],
    [
      'an open sendBeacon',
      async (page) => (await run(`navigator.sendBeacon('/held/beacon')`)(page), requested('/held/beacon')),
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
  ],
};

/** What the next lease finds, after all responses have arrived. */
async function lookAfter(leave: (page: Page) => Promise<unknown>) {
  const { released } = await withPooledBrowser(used.pool, async ({ page }) => {
    await page.goto(site.url);
    await leave(page);
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

it.each(CASES.reused)(
  'after %s, the browser is reused, and the next lease finds nothing',
  async (_what, leave) => {
    expect(await lookAfter(leave)).toEqual({ released: 'reused', ...FOUND });
  },
);

it.each(CASES.destroyed)('after %s that may still write, the browser is destroyed', async (_what, leave) => {
  expect(await lookAfter(leave)).toEqual({ released: 'destroyed', ...FOUND });
});

// The browser is destroyed if the worker does not end in time.
it('after a service worker that writes all the time, the next lease finds nothing', async () => {
  const register = `navigator.serviceWorker.register('/a.js').then(() => navigator.serviceWorker.ready, 0)`;
  expect(await lookAfter((page) => page.evaluate(register))).toMatchObject(FOUND);
});
