import type { Browser, Page } from 'playwright-core';
import puppeteerCore from 'puppeteer-core';
import { beforeAll, expect, it } from 'vitest';
import { BrowserPool, serveProxy } from '../../src/index.js';
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
/** Its browsers start with an extension, which stays. */
const used = useLocalPool({
  args: [`--load-extension=${folders.pool}`, '--disable-features=DisableLoadExtensionCommandLineSwitch'],
});

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

const view = ({ page }: { page: Page }) => page.evaluate<string>('[screen.width, innerWidth].join()');
/** Those of a new browser. */
let newView: string;
beforeAll(async () => {
  const { value } = await withPooledBrowser(used.pool, view);
  newView = value;
});

it('the extension with which a pool starts its browsers stays', async () => {
  const { released } = await withPooledBrowser(used.pool, view);
  expect(released).toBe('reused');
  expect(await marksOf(used.pool)).toEqual(['pool']);
});

it.each<[how: string, use: () => Promise<{ released: string }>]>([
  [
    // In the browser's own context, a lease in a browser that nothing can destroy loads one, below.
    'the library, in a lease with a context of its own, one of them with a background worker',
    () =>
      withPooledBrowser(
        used.pool,
        async ({ browser }) => {
          for (const folder of [folders.lease, folders.worker]) await load(browser, folder);
        },
        { context: 'new' },
      ),
  ],
  [
    'the library again, after the pool',
    () => withPooledBrowser(used.pool, async ({ browser }) => void (await load(browser, folders.pool))),
  ],
  [
    'Puppeteer over WebDriver BiDi',
    () =>
      withPuppeteer(used.pool, async ({ browser }) => void (await browser.installExtension(folders.lease)), {
        protocol: 'bidi',
      }),
  ],
])('extensions that were loaded by %s do not act in the pages of the next lease', async (_how, use) => {
  const { released } = await use();
  expect(released).toBe('destroyed');
  expect(await marksOf(used.pool)).toEqual(['pool']);
});

it('an extension that a program with the URL of a proxy loaded does not act in the pages of the next client', async () => {
  await using proxy = await serveProxy(used.pool, { keep: 1 });
  await loadByUrl(`${proxy.url.replace('http', 'ws')}/alice`);
  expect(await marksOf(used.pool)).toEqual(['pool']);
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

it('a browser to which a lease sent commands within other commands is destroyed', async () => {
  const { released, cleanupErrors } = await withPooledBrowser(
    used.pool,
    async ({ browser, context, page }) => {
      const { targetInfo } = await (await context.newCDPSession(page)).send('Target.getTargetInfo');
      const client = await browser.newBrowserCDPSession();
      const { sessionId } = await client.send('Target.attachToTarget', { targetId: targetInfo.targetId });
      const login = { id: 1, method: 'Page.navigate', params: { url: site.url.replace('//', '//a:b@') } };
      const message = JSON.stringify(login);
      await client.send('Target.sendMessageToTarget', { sessionId, message });
    },
  );
  expect(released).toBe('destroyed');
  expect(cleanupErrors[0]?.message).toContain('within a message');
});

it('a browser in which a lease left perhaps other settings is destroyed', async () => {
  const { released, cleanupErrors } = await withPooledBrowser(used.pool, async ({ page }) => {
    await page.goto('chrome://settings');
    await page.evaluate('new Promise((resolve) => chrome.settingsPrivate.setDefaultZoom(1.5, resolve))');
  });
  expect(released).toBe('destroyed');
  expect(cleanupErrors[0]?.message).toContain('perhaps other settings');
  const { value } = await withPooledBrowser(used.pool, view);
  expect(value).toBe(newView);
});

it("in a browser that nothing can destroy, the extensions of a lease and of one that was detached end, and its user's stays", async () => {
  await using browser = await startChromium('--enable-unsafe-extension-debugging');
  await using pool = new BrowserPool('mine', { service: cdp(`http://${new URL(browser.url).host}`) });
  const own = await puppeteerCore.connect({ browserWSEndpoint: browser.url });
  await own.installExtension(folders.pool);
  await withPooledBrowser(pool, (lease) => load(lease.browser, folders.lease));
  expect(await marksOf(pool)).toEqual(['pool']);
  const held = await leaseBrowser(pool);
  await load(held.browser, folders.lease);
  const attached = await attachBrowser(await held.detach(), { pool });
  await attached.release();
  expect(await marksOf(pool)).toEqual(['pool']);
  await own.disconnect();
});
