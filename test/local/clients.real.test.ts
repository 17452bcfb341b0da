import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Page } from 'playwright-core';
import puppeteer, { type Browser, type ConnectOptions } from 'puppeteer-core';
import { expect, it, onTestFinished } from 'vitest';
import type { BrowserSession } from '../../src/service/wire.js';
import { startApi, titled } from './support.js';
import { useWholeBrowser } from '../support/whole-browser.js';

useWholeBrowser();

const api = await startApi();

/** A poll that a busy machine does not exceed. */
const BUSY = { timeout: 150_000 };

it('serves an unmodified Playwright in consecutive leases', async () => {
  for (let lease = 0; lease < 2; lease++) {
    const session = await api.lease({ start_url: titled('start') });
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const [context] = browser.contexts();
    // On a busy machine, the service does not wait for the page.
    await expect.poll(() => context!.pages()[0]!.title(), BUSY).toBe('start');
    const page = await context!.newPage();
    await page.goto(titled('one'));
    expect(await page.title()).toBe('one');
    expect((await page.screenshot()).length).toBeGreaterThan(1000);
    await page.close();
    await browser.close();
    expect(await api.release(session)).toBe(204);
  }
});

it('shows pages in about 1280 x 720 pixels, so that sites use their layout for desktops', async () => {
  await withPlaywright(async (page) => {
    const [width, height] = await page.evaluate<[number, number]>('[innerWidth, innerHeight]');
    expect(width).toBe(1280);
    // The toolbar that Chromium subtracts depends on its version.
    expect(Math.abs(height - 720)).toBeLessThan(70);
  });
});

it('loads no pages of Chromium itself beside those of a client', async () => {
  const session = await api.lease();
  const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_ws_url });
  const client = await browser.target().createCDPSession();
  const context = await browser.createBrowserContext();
  await context.newPage();
  const { targetInfos } = await client.send('Target.getTargets', { filter: [{}] });
  const others = targetInfos.filter(({ type }) => !['browser', 'page', 'tab'].includes(type));
  expect(others.map(({ type, url }) => `${type} ${url}`)).toEqual([]);
  await context.close();
  await browser.disconnect();
  expect(await api.release(session)).toBe(204);
});

it('lets Playwright go back and forward over CDP', async () => {
  const site = await startSite();
  await withPlaywright(async (page) => {
    await page.goto(`${site}/one`);
    await page.goto(`${site}/two`);
    await page.goBack({ timeout: 60_000 });
    expect(await page.title()).toBe('/one');
    await page.goForward({ timeout: 60_000 });
    expect(await page.title()).toBe('/two');
  });
});

it('opens popups without a click, and shows pages the layout for a mouse', async () => {
  const site = await startSite();
  await withPlaywright(async (page) => {
    await page.goto(site);
    const [popup] = await Promise.all([
      page.waitForEvent('popup', { timeout: 60_000 }),
      page.evaluate(() => setTimeout(() => open('/popup'))),
    ]);
    await popup.waitForURL(`${site}/popup`);
    await popup.close();
    expect(await page.evaluate(() => matchMedia('(hover: hover) and (pointer: fine)').matches)).toBe(true);
  });
});

it('serves an unmodified Puppeteer over CDP in consecutive leases', async () => {
  for (let lease = 0; lease < 2; lease++) {
    await drive((session) => ({ browserWSEndpoint: session.cdp_ws_url }));
  }
});

it('serves an unmodified Puppeteer over BiDi in consecutive leases', async () => {
  for (let lease = 0; lease < 2; lease++) {
    await drive((session) => ({ browserWSEndpoint: session.webdriver_ws_url, protocol: 'webDriverBiDi' }));
  }
});

it('serves both protocols at the same time', async () => {
  const session = await api.lease();
  const bidi = await puppeteer.connect({
    browserWSEndpoint: session.webdriver_ws_url,
    protocol: 'webDriverBiDi',
    defaultViewport: null,
  });
  const cdp = await chromium.connectOverCDP(session.cdp_ws_url);
  await cdp.contexts()[0]!.pages()[0]!.goto(titled('seen by both'));
  const [page] = await bidi.pages();
  await expect.poll(() => page!.title()).toBe('seen by both');
  await cdp.close();
  await bidi.disconnect();
  await api.release(session);
});

it('replaces a browser that Puppeteer closed', async () => {
  const session = await api.lease();
  const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_ws_url });
  await browser.close();
  await expect.poll(() => api.pool.stats().destroyed).toBe(1);
  expect(await api.release(session)).toBe(404);
  const next = await api.lease();
  expect(next.session_id).not.toBe(session.session_id);
  await api.release(next);
});

async function drive(options: (session: BrowserSession) => ConnectOptions): Promise<void> {
  const session = await api.lease({ start_url: titled('start') });
  const browser: Browser = await puppeteer.connect({ defaultViewport: null, ...options(session) });
  const [first] = await browser.pages();
  await expect.poll(() => first!.title(), BUSY).toBe('start');
  const page = await browser.newPage();
  await page.goto(titled('one'));
  expect(await page.title()).toBe('one');
  expect(await page.evaluate(() => 6 * 7)).toBe(42);
  expect((await page.screenshot()).length).toBeGreaterThan(1000);
  await page.close();
  await browser.disconnect();
  expect(await api.release(session)).toBe(204);
}

/** Leases a browser and drives its first page with an unmodified Playwright. */
async function withPlaywright(use: (page: Page) => Promise<void>): Promise<void> {
  const session = await api.lease();
  try {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    await use(browser.contexts()[0]!.pages()[0]!);
    await browser.close();
  } finally {
    await api.release(session);
  }
}

/** Serves pages whose titles are their paths. Chromium keeps no data URLs in its back-forward cache. */
async function startSite(): Promise<string> {
  const server = createServer(({ url }, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${url}</title>`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
