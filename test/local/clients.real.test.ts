import puppeteer, { type Browser, type ConnectOptions } from 'puppeteer-core';
import { expect, it } from 'vitest';
import type { BrowserSession } from '../../src/index.js';
import { useWholeBrowser } from '../support/whole-browser.js';
import { drive, serveSite, startApi, titled } from './support.js';

useWholeBrowser();

const api = await startApi();
/** Its titles are the paths. Chromium keeps no data URLs in its back-forward cache. */
const paths = ['/', '/one', '/two', '/popup'];
const site = await serveSite(Object.fromEntries(paths.map((path) => [path, `<title>${path}</title>`])));

const overCdp = ({ cdp_ws_url }: BrowserSession) => connect({ browserWSEndpoint: cdp_ws_url });
const overBidi = ({ webdriver_ws_url }: BrowserSession) =>
  connect({ browserWSEndpoint: webdriver_ws_url, protocol: 'webDriverBiDi' });

it('shows the start_url, goes back and forward, opens popups without a click, has the layout for a desktop', async () => {
  const session = await api.lease({ start_url: titled('start') });
  await drive(session, async (page) => {
    // On a busy machine, the service does not wait for the page.
    await expect.poll(() => page.title(), { timeout: 150_000 }).toBe('start');
    await page.goto(`${site}/one`);
    await page.goto(`${site}/two`);
    await page.goBack({ timeout: 60_000 });
    expect(await page.title()).toBe('/one');
    await page.goForward({ timeout: 60_000 });
    expect(await page.title()).toBe('/two');
    const [popup] = await Promise.all([
      page.waitForEvent('popup', { timeout: 60_000 }),
      page.evaluate(() => setTimeout(() => open('/popup'))),
    ]);
    await popup.waitForURL(`${site}/popup`);
    await popup.close();
    expect(await page.evaluate(() => matchMedia('(hover: hover) and (pointer: fine)').matches)).toBe(true);
    const [width, height] = await page.evaluate<[number, number]>('[innerWidth, innerHeight]');
    expect(width).toBe(1280);
    // The toolbar that Chromium subtracts depends on its version.
    expect(Math.abs(height - 720)).toBeLessThan(70);
  });
  await api.release(session);
});

it('loads no pages of Chromium itself beside those of a client', async () => {
  const session = await api.lease();
  const browser = await overCdp(session);
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

it('runs a shared worker of a data: URL', async () => {
  const session = await api.lease();
  const answer = await drive(session, async (page) => {
    await page.goto(site);
    return await page.evaluate(
      `new Promise((resolve) => {
        const worker = new SharedWorker('data:text/javascript,onconnect = ({ ports: [port] }) => port.postMessage(1)');
        worker.port.onmessage = ({ data }) => resolve(data);
        worker.onerror = () => resolve('failed');
      })`,
    );
  });
  expect(answer).toBe(1);
  await api.release(session);
});

it('serves both protocols at the same time', async () => {
  const session = await api.lease();
  const bidi = await overBidi(session);
  await drive(session, async (page) => {
    await page.goto(titled('seen by both'));
    const [same] = await bidi.pages();
    await expect.poll(() => same!.title()).toBe('seen by both');
  });
  await bidi.disconnect();
  await api.release(session);
});

it('replaces a browser that Puppeteer closed', async () => {
  const session = await api.lease();
  await (await overCdp(session)).close();
  await expect.poll(() => api.pool.stats().destroyed).toBe(1);
  expect(await api.release(session)).toBe(404);
  const next = await api.lease();
  expect(next.session_id).not.toBe(session.session_id);
  await api.release(next);
});

function connect(options: ConnectOptions): Promise<Browser> {
  return puppeteer.connect({ defaultViewport: null, ...options });
}
