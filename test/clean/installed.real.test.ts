import type { Browser, Page } from 'playwright-core';
import puppeteerCore from 'puppeteer-core';
import { expect, it } from 'vitest';
import { BrowserPool, serveProxy } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { attachBrowser, leaseBrowser, withPooledBrowser } from '../../src/playwright.js';
import { withPooledBrowser as withPuppeteer } from '../../src/puppeteer.js';
import { cdp } from '../../src/services.js';
import { startChromium } from '../support/chromium.js';
import { marking, useExtensions } from '../support/extension.js';
import { useLocalPool } from '../support/local.js';
import { useSite } from '../support/site.js';
import { useWholeBrowser } from '../support/whole-browser.js';

// A headless shell has no extensions.
useWholeBrowser();

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="144" height="144"/>`;
const APP = {
  name: 'App',
  start_url: '/',
  display: 'standalone',
  icons: [{ src: '/icon.svg', type: 'image/svg+xml', sizes: '144x144' }],
};
const site = useSite(({ url = '' }, response) => {
  if (url === '/icon.svg') return response.setHeader('content-type', 'image/svg+xml').end(ICON);
  if (url === '/app.json') return response.end(JSON.stringify(APP));
  return response.setHeader('content-type', 'text/html').end('<link rel=manifest href=/app.json>page');
});
const folders = useExtensions({
  lease: marking('lease'),
  pool: marking('pool'),
  worker: { manifest: { background: { service_worker: 'worker.js' } }, files: { 'worker.js': '' } },
});
const used = useLocalPool();

/** The names of the extensions that act in a page of a new lease. */
async function marksOf(pool: BrowserPool<object>): Promise<readonly string[]> {
  const { value } = await withPooledBrowser(pool, async ({ page }) => {
    await page.goto(site.url);
    return page.evaluate('Object.keys(document.documentElement.dataset)');
  });
  return value as string[];
}

async function load(browser: Browser, path: string): Promise<string> {
  const client = await browser.newBrowserCDPSession();
  const { id } = (await client.send('Extensions.loadUnpacked' as never, { path } as never)) as { id: string };
  return id;
}

/** Loads the extension as a program that was given the URL of the session. */
async function loadByUrl(browserWSEndpoint: string): Promise<void> {
  const browser = await puppeteerCore.connect({ browserWSEndpoint });
  const client = await browser.target().createCDPSession();
  await client.send('Extensions.loadUnpacked', { path: folders.lease });
  await browser.disconnect();
}

it.each<[how: string, use: () => Promise<{ released: string }>]>([
  [
    'the library',
    () => withPooledBrowser(used.pool, async ({ browser }) => void (await load(browser, folders.lease))),
  ],
  [
    'the library, in a lease with a context of its own',
    () =>
      withPooledBrowser(used.pool, async ({ browser }) => void (await load(browser, folders.lease)), {
        context: 'new',
      }),
  ],
  [
    'the library, and has a background worker',
    () => withPooledBrowser(used.pool, async ({ browser }) => void (await load(browser, folders.worker))),
  ],
  [
    'another program with the URL of the session',
    () => withPooledBrowser(used.pool, ({ session }) => loadByUrl(session.cdp_ws_url)),
  ],
  [
    'Puppeteer over WebDriver BiDi',
    () =>
      withPuppeteer(used.pool, async ({ browser }) => void (await browser.installExtension(folders.lease)), {
        protocol: 'bidi',
      }),
  ],
])('an extension that was loaded by %s does not act in the pages of the next lease', async (_how, use) => {
  const { released } = await use();
  expect(released).toBe('destroyed');
  expect(await marksOf(used.pool)).toEqual([]);
});

it('an extension that a client of a proxy loaded does not act in the pages of the next client', async () => {
  await using proxy = await serveProxy(used.pool, { keep: 1 });
  await loadByUrl(`${proxy.url.replace('http', 'ws')}/alice`);
  expect(await marksOf(used.pool)).toEqual([]);
});

it('the extensions with which a pool starts its browsers stay, also if a lease loads them again', async () => {
  const flags = [
    `--load-extension=${folders.pool}`,
    '--disable-features=DisableLoadExtensionCommandLineSwitch',
  ];
  await using local = await startLocalPool({ pools: [{ name: 'own', size: 1 }], args: flags });
  await using pool = new BrowserPool('own', { baseUrl: local.baseUrl, token: local.token });
  const first = await withPooledBrowser(pool, () => undefined);
  expect(first.released).toBe('reused');
  expect(await marksOf(pool)).toEqual(['pool']);
  await withPooledBrowser(pool, ({ browser }) => load(browser, folders.pool));
  expect(await marksOf(pool)).toEqual(['pool']);
});

it('a browser in which a lease installed a web app is destroyed', async () => {
  const { released, cleanupErrors } = await withPooledBrowser(used.pool, async ({ browser, page }) => {
    await page.goto(site.url);
    const client = await browser.newBrowserCDPSession();
    const app = { manifestId: `${site.url}/`, installUrlOrBundleUrl: site.url };
    await client.send('PWA.install', app);
  });
  expect(released).toBe('destroyed');
  expect(cleanupErrors.map(({ message }) => message)).toEqual([expect.stringContaining('a web app')]);
});

it.each<[what: string, use: (page: Page) => Promise<unknown>]>([
  [
    'a changed screen',
    async (page) => {
      const client = await page.context().newCDPSession(page);
      const { screenInfos } = await client.send('Emulation.getScreenInfos');
      const screenId = screenInfos[0]!.id;
      await client.send('Emulation.updateScreen', { screenId, width: 640, height: 480 });
    },
  ],
  [
    'perhaps other settings',
    async (page) => {
      await page.goto('chrome://settings');
      await page.evaluate('new Promise((resolve) => chrome.settingsPrivate.setDefaultZoom(1.5, resolve))');
    },
  ],
])('a browser in which a lease left %s is destroyed', async (what, use) => {
  const view = (page: Page) => page.evaluate<string>('[screen.width, innerWidth].join()');
  const first = await withPooledBrowser(used.pool, ({ page }) => view(page), { release: 'destroy' });
  const { released, cleanupErrors } = await withPooledBrowser(used.pool, ({ page }) => use(page));
  expect(released).toBe('destroyed');
  expect(cleanupErrors[0]?.message).toContain(what);
  expect((await withPooledBrowser(used.pool, ({ page }) => view(page))).value).toBe(first.value);
});

const bounds = async (page: Page) => {
  const client = await page.context().newCDPSession(page);
  const { windowId } = await client.send('Browser.getWindowForTarget');
  await client.send('Browser.setWindowBounds', { windowId, bounds: { width: 533, height: 444 } });
};
const size = ({ page }: { page: { evaluate(script: string): Promise<unknown> } }) =>
  page.evaluate('[outerWidth, outerHeight, screenX, screenY].join()');

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
  const first = await withPooledBrowser(used.pool, size, { release: 'destroy' });
  expect(await use()).toMatchObject({ released });
  expect((await withPooledBrowser(used.pool, size)).value).toBe(first.value);
});

it.each<[when: string, use: (pool: BrowserPool<object>) => Promise<unknown>]>([
  [
    'one lease',
    (pool) => withPooledBrowser(pool, async (lease) => void (await load(lease.browser, folders.lease))),
  ],
  [
    'a lease that was detached',
    async (pool) => {
      const held = await leaseBrowser(pool);
      await load(held.browser, folders.lease);
      const attached = await attachBrowser(await held.detach(), { pool });
      await attached.release();
    },
  ],
])(
  "in a browser that nothing can destroy, the extension of %s ends, and its user's stays",
  async (_when, use) => {
    await using browser = await startChromium('--enable-unsafe-extension-debugging');
    await using pool = new BrowserPool('mine', { service: cdp(`http://${new URL(browser.url).host}`) });
    const own = await puppeteerCore.connect({ browserWSEndpoint: browser.url });
    await own.installExtension(folders.pool);
    await use(pool);
    expect(await marksOf(pool)).toEqual(['pool']);
    await own.disconnect();
  },
);
