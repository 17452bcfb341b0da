import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import { saveListPage } from '../../../src/recorder/page/list-page.js';
import type { TimelineEntry } from '../../../src/recorder/timeline.js';
import { LOGIN, useHandoffs } from '../../features/handoff/support.js';
import { faults, violations } from '../../local/pages/support.js';
import { Replays } from '../../local/replays/support.js';
import { startApi } from '../../local/support.js';
import { facts, PICTURES, savePage, useFolder, useMedia } from '../../recorder/page/support.js';
import { useSite } from '../../support/site.js';

const api = await startApi({
  pools: [{ size: 3, timeoutSeconds: 600, viewport: { width: 800, height: 600 } }],
  quirks: { liveViewsHeadless: true },
});
const made = useMedia();
const folder = useFolder();
const { person, open, onEvent } = useHandoffs();
const site = useSite((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end(LOGIN);
});
const urls: Record<string, string> = { dashboard: api.pool.dashboardUrl };

const LONG_NAME = 'an-ended.lease-whose-name-is-longer-than-a-phone-is-wide.spec.ts';

const EVENTS: readonly TimelineEntry[] = [
  { at: 100, kind: 'mark', text: LONG_NAME },
  { at: 500, kind: 'call', text: 'page.click("#pay")', took: 300, status: 'page.click: Timeout' },
  { at: 900, kind: 'navigation', text: 'https://shop.example/', status: '200 OK' },
  { at: 1_500, kind: 'click', text: 'button#pay Pay' },
  { at: 1_600, kind: 'console', text: 'log: paid' },
  { at: 5_000, kind: 'failed', text: 'Error: no' },
  { at: 6_000, kind: 'connected', text: 'playwright' },
];

beforeAll(async () => {
  const replays = new Replays(api);
  const ended = await api.lease({ name: LONG_NAME });
  urls['ended live view'] = ended.browser_live_view_url!;
  await replays.record(ended);
  await api.release(ended);
  const session = await api.lease({ name: 'a.lease', tags: { worker: '1' } });
  urls['live'] = session.browser_live_view_url!;
  urls['live, to watch'] = '';
  const replay = await replays.record(session, async () => {
    const view = await person.open(urls['live']!);
    await view.getByLabel('Address').fill('data:text/html,<h1>A page</h1>');
    await view.keyboard.press('Enter');
    await view.getByRole('tab', { name: /A page|data:/ }).waitFor();
    urls['live, to watch'] = new URL(
      (await view.getByRole('link', { name: 'Only watch' }).getAttribute('href'))!,
      view.url(),
    ).href;
  });
  urls['served replay'] = replay.replay_view_url!;
  urls['confirmation'] = urls['dashboard']!;
  urls['dead link'] = replay.replay_view_url!.replace(/=.*/, '=0');
  const media = made.media;
  const failed = facts(EVENTS, {
    result: 'failed',
    masked: 'covered',
    leaseName: 'cart',
    tags: { team: 'shop' },
  });
  urls['replay with a video'] = await savePage(folder, failed, media);
  const pictures = facts(EVENTS, { ...PICTURES, failure: 'No encoder was found.' });
  urls['replay with pictures'] = await savePage(folder, pictures, media);
  const none = { state: 'none', video: undefined } as const;
  urls['replay without a video'] = await savePage(
    folder,
    facts(EVENTS, { ...none, failure: 'No encoder.' }),
    media,
  );
  urls['replay without events'] = await savePage(folder, facts([], none), media);
  urls['list of replays'] = await saveList(3);
  urls['empty list of replays'] = await saveList(0);
});

/** Writes a list of the same recording. @returns The URL of the list. */
async function saveList(count: number): Promise<string> {
  const own = mkdtempSync(join(folder, 'list-'));
  mkdirSync(join(own, 'one'));
  writeFileSync(join(own, 'one', 'poster.jpg'), made.media.pictures[0]!);
  const { pool, service } = facts([]);
  const states = [
    { state: 'ready', result: 'failed' },
    { state: 'ready', result: 'succeeded' },
    { state: 'recording' },
  ] as const;
  const items = states.slice(0, count).map((state, index) => ({
    folder: 'one',
    title: index === 0 ? LONG_NAME : `cart, test ${index}`,
    facts: { pool, service, tags: { team: 'shop' }, startedAt: '2026-02-03T04:05:06.789Z', ...state },
    length: 8_000,
    ...('result' in state && state.result === 'failed' && { failedAt: 6_200 }),
  }));
  await saveListPage(join(own, 'index.html'), items);
  return pathToFileURL(join(own, 'index.html')).href;
}

const factsShown = (page: Page) => page.locator('#facts dt').first().waitFor();

/** Waits until a page shows its content. */
const FILLED: Record<string, (page: Page) => Promise<unknown>> = {
  dashboard: async (page) => {
    await page.getByRole('link', { name: 'Open the replay of a.lease' }).waitFor();
    await page.getByRole('img', { name: 'The page of a.lease' }).waitFor();
  },
  confirmation: async (page) => {
    await page.getByRole('button', { name: /Destroy.* a.lease/ }).click();
    await page.getByRole('dialog').waitFor();
  },
  live: (page) => page.locator('canvas[data-pictures]').waitFor(),
  'live, to watch': (page) => page.locator('canvas[data-pictures]').waitFor(),
  'ended live view': (page) => page.getByRole('link', { name: 'Open the recording' }).waitFor(),
  'dead link': (page) => page.getByText('This link to a recording is incomplete').waitFor(),
  'served replay': (page) =>
    page
      .getByRole('link', { name: /Navigation/ })
      .first()
      .waitFor(),
  'replay with a video': factsShown,
  'replay with pictures': factsShown,
  'replay without a video': factsShown,
  'replay without events': factsShown,
  'list of replays': (page) => page.getByText('3 replays').waitFor(),
  'empty list of replays': (page) => page.getByText('There are no replays.').waitFor(),
};

it.each(Object.keys(FILLED))(
  'the page %s can be read and used in light and dark, on a phone and a laptop, without a mouse, and loads nothing from elsewhere',
  { timeout: 300_000 },
  async (name) => {
    const page = await person.open(urls[name]!);
    await FILLED[name]!(page);
    expect(faults(page).filter((fault) => !REFUSALS[name]?.test(fault))).toEqual([]);
    await expectUsable(page);
  },
);

/** The messages of the browser about the requests that the service refuses to these pages. */
const REFUSALS: Record<string, RegExp> = {
  'dead link': /^Failed to load resource: .* a status of 401/,
};

it('the page of a hand-off can be read and used in light and dark, on a phone and a laptop, without a mouse', async () => {
  const pool = new BrowserPool('default', { baseUrl: api.pool.baseUrl, token: api.pool.token });
  await playwright.withPooledBrowser(
    pool,
    async ({ page, handoff }) => {
      await page.goto(site.url);
      const asked = handoff({ message: `Log in at ${'a-very-long-address.'.repeat(10)}` });
      const view = await open();
      await view.locator('canvas[data-pictures]').waitFor();
      await expectUsable(view);
      await view.getByRole('button', { name: 'Use the browser' }).click();
      for (let tab = 0; tab < 5; tab++) await view.keyboard.press('Tab');
      await view.keyboard.press('Enter');
      await view.getByText('Your code?').waitFor();
      await expectUsable(view);
      await view.getByRole('button', { name: 'Cancel' }).click();
      await view.getByRole('button', { name: 'Cannot be done' }).click();
      await view.getByRole('heading', { name: 'The hand-off is over' }).waitFor();
      await expectUsable(view);
      expect(faults(view)).toEqual([]);
      expect(await asked).toEqual({ status: 'declined', note: '' });
    },
    { onEvent },
  );
  await pool.close();
});

it.each(['dashboard', 'list of replays', 'replay with a video'])(
  'the page %s shows times in the zone and the language of its reader',
  async (name) => {
    const page = await person.open(urls[name]!, { locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    await FILLED[name]!(page);
    const times = await page.locator('time[datetime]').all();
    expect(times.length).toBeGreaterThan(1);
    for (const time of times) {
      const date = new Date((await time.getAttribute('datetime'))!);
      const shown = date.toLocaleTimeString('de-DE', { timeStyle: 'short', timeZone: 'Asia/Tokyo' });
      expect(await time.textContent()).toMatch(new RegExp(`(^|, )${shown}(:\\d\\d)?$`));
    }
    await page.context().close();
  },
);

/** Font and colours of the first page that was tested, in light and dark. */
const looks = new Map<string, string>();

/** axe finds nothing, nothing is wider than the window, the Tab key reaches each control, and all pages have the same look. */
async function expectUsable(page: Page): Promise<void> {
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      expect([width, colorScheme, await violations(page)]).toEqual([width, colorScheme, []]);
      const look = await page.evaluate(() => {
        const { fontFamily, fontSize, color, backgroundColor } = getComputedStyle(document.body);
        return [fontFamily, fontSize, color, backgroundColor].join();
      });
      if (!looks.has(colorScheme)) looks.set(colorScheme, look);
      expect(look).toBe(looks.get(colorScheme));
    }
    const overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
    expect([width, await page.evaluate(overflow)]).toEqual([width, 0]);
    expect([width, await unreached(page)]).toEqual([width, []]);
  }
}

/** The controls that the Tab key does not reach, or on which nobody sees the focus. */
async function unreached(page: Page): Promise<string[]> {
  const controls = await page.evaluateHandle(() => {
    const root = document.querySelector('dialog[open]') ?? document.body;
    const all = root.querySelectorAll<HTMLElement>(
      'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, [tabindex="0"]',
    );
    // Arrow keys reach the other tabs. What screen readers skip has its like elsewhere.
    const excepted = '[aria-hidden="true"] *, [role="tab"][aria-selected="false"]';
    return new Set([...all].filter((one) => one.checkVisibility() && !one.matches(excepted)));
  });
  const count = await controls.evaluate((set) => set.size);
  for (let press = 0; press < count + 3; press++) {
    await page.keyboard.press('Tab');
    const isInBrowser = await controls.evaluate((set) => {
      const element = document.activeElement as HTMLElement;
      const isInBrowser = element.id === 'keyboard';
      const shown = isInBrowser ? document.getElementById('screen')! : element;
      const { left, right, top, bottom } = shown.getBoundingClientRect();
      const isInSight = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
      if (isInSight && getComputedStyle(shown).outlineStyle !== 'none') set.delete(element);
      return isInBrowser;
    });
    // The browser that the page shows takes all other keys.
    if (isInBrowser) await page.keyboard.press('Shift+Escape');
  }
  return await controls.evaluate((set) => [...set].map(({ outerHTML }) => outerHTML.slice(0, 200)));
}
