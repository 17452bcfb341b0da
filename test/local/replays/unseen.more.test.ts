import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { BrowserSession } from '../../../src/index.js';
import { hasXvfb, serveSite, startApi, tryWebSocket } from '../support.js';
import { Replays } from './support.js';

const site = await serveSite({
  '/': `<!doctype html><body style="height:6000px"><h1>Orders</h1><button>Add</button><output></output>
    <p style="margin-top:3000px">The end</p><script>
    globalThis.seen = [];
    const note = (name) => seen.push(name);
    for (const type of ['focus', 'blur', 'resize', 'scroll', 'visibilitychange', 'pageshow', 'pagehide']) {
      addEventListener(type, () => note('window ' + type));
      document.addEventListener(type, () => note('document ' + type));
    }
    visualViewport.addEventListener('resize', () => note('visual viewport'));
    for (const query of ['(max-width: 900px)', '(min-resolution: 2dppx)', '(orientation: portrait)'])
      matchMedia(query).addEventListener('change', () => note(query));
    new ResizeObserver(() => note('size ' + innerWidth + ' x ' + innerHeight)).observe(document.documentElement);
    document.querySelector('button').onclick = () => (document.querySelector('output').value += ' added');
  </script>`,
});
const sockets: WebSocket[] = [];
afterAll(() => sockets.forEach((socket) => socket.terminate()));

/** What a page notices in each phase of its life, and the user's screenshots of it. */
async function live(session: BrowserSession): Promise<{ seen: string[][]; screenshots: string[] }> {
  const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_ws_url, defaultViewport: null });
  const screenshots: string[] = [];
  const seen: string[][] = [];
  const page = await browser.newPage();
  const shoot = async (options = {}) => {
    const png = await page.screenshot(options);
    screenshots.push(createHash('sha256').update(png).digest('hex'));
  };
  // The user's own screenshots of a full page resize a page with a window: their number of events differs from time to time.
  const phase = async (act: () => Promise<unknown>) => {
    await noticed(300);
    await page.evaluate('void (seen.length = 0)');
    await act();
    seen.push((await noticed(500)).toSorted());
  };
  /** What the page has noticed, as soon as nothing more follows for some milliseconds. */
  const noticed = async (milliseconds: number): Promise<string[]> => {
    const look = async () => (await page.evaluate('seen')) as string[];
    for (let before = await look(); ;) {
      await sleep(milliseconds);
      const now = await look();
      if (now.length === before.length) return now;
      before = now;
    }
  };
  await page.goto(site);
  await phase(() => page.click('button'));
  await shoot();
  await shoot({ fullPage: true });
  await page.setViewport({ width: 800, height: 4_000, deviceScaleFactor: 2 });
  await phase(() => page.click('button'));
  // A picture of the whole page, twice as large, differs from time to time by itself.
  await shoot();
  await phase(async () => {
    page.once('dialog', (dialog) => void sleep(700).then(() => dialog.accept()));
    await page.evaluate('alert("Sure?")');
  });
  const other = await browser.newPage();
  await other.goto('data:text/html,<body style="background:teal">');
  await phase(() => page.evaluate('document.querySelector("output").value += " behind"'));
  await other.close();
  await page.bringToFront();
  await phase(() => page.click('button'));
  await shoot();
  await page.close();
  await browser.disconnect();
  return { seen, screenshots };
}

describe.each([true, false])('a recorded page, headless: %s', (headless) => {
  it.runIf(headless || hasXvfb)('behaves as an unrecorded one, also in a live view', async () => {
    // A headless shell opens no windows.
    for (const name of ['CHROME_PATH', 'DISPLAY', 'WAYLAND_DISPLAY']) vi.stubEnv(name, undefined);
    const quirks = { liveViewsHeadless: true };
    const api = await startApi({ pools: [{ headless, viewport: { width: 1000, height: 700 } }], quirks });
    const first = await api.lease();
    const unrecorded = await live(first);
    await api.release(first, false);
    // The dialog.
    expect(unrecorded.seen[2]).toEqual(['window blur', 'window focus']);
    const session = await api.lease();
    const replays = new Replays(api);
    for (const url of [session.browser_live_view_url!, api.pool.dashboardUrl])
      sockets.push((await tryWebSocket(url.replace(/^http/, 'ws'))).socket);
    const id = await replays.start(session);
    const recorded = await live(session);
    await replays.stop(session, id);
    expect(recorded).toEqual(unrecorded);
    await api.pool.close();
  });
});
