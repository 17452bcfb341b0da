import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { startApi } from '../support.js';
import { faults, record, usePerson } from './support.js';

const api = await startApi({ pools: [{ size: 2 }], quirks: { liveViewsHeadless: true } });
/** Widths of a phone, a half window and a laptop, in pixels. */
const WIDTHS = [390, 900, 1280];
const person = usePerson();
const urls: Record<string, string> = { dashboard: api.pool.dashboardUrl };

beforeAll(async () => {
  const ended = await api.lease({ name: 'an-ended.lease-whose-name-is-longer-than-a-phone-is-wide.spec.ts' });
  urls['ended live view'] = ended.browser_live_view_url!;
  await record(api, ended, async () => {});
  await api.release(ended);
  const session = await api.lease({ name: 'a.lease', tags: { worker: '1' } });
  const path = session.browser_live_view_url!;
  urls['live'] = path;
  const replay = await record(api, session, async () => {
    const view = await person.open(path);
    await view.getByLabel('Address').fill('data:text/html,<h1>A page</h1>');
    await view.keyboard.press('Enter');
    await view.getByRole('tab', { name: /A page|data:/ }).waitFor();
  });
  urls['replay'] = replay.replay_view_url!;
  urls['confirmation'] = urls['dashboard']!;
  urls['dead link'] = replay.replay_view_url!.replace(/=.*/, '=0');
}, 120_000);

/** Wait until each page shows its content. */
const FILLED: Record<string, (page: Page) => Promise<unknown>> = {
  dashboard: async (page) => {
    await page.getByRole('link', { name: 'Open the replay of a.lease' }).waitFor();
    await page.getByRole('img', { name: 'The page of a.lease' }).waitFor();
  },
  confirmation: async (page) => {
    await page.getByRole('button', { name: 'Release a.lease' }).click();
    await page.getByRole('dialog').waitFor();
  },
  live: (page) => page.locator('canvas[data-pictures]').waitFor(),
  'ended live view': (page) => page.getByRole('link', { name: 'Open the recording' }).waitFor(),
  'dead link': (page) => page.getByText('This link to a recording is incomplete').waitFor(),
  replay: (page) =>
    page
      .getByRole('link', { name: /Navigation/ })
      .first()
      .waitFor(),
};

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  it.each(Object.keys(FILLED))(
    'the page %s has no serious accessibility violation',
    async (name) => {
      // The page's policy refuses the injected axe script.
      const page = await person.open(urls[name]!, { colorScheme, bypassCSP: true });
      await FILLED[name]!(page);
      await page.evaluate(axe.source);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        expect([width, await seriousViolations(page)]).toEqual([width, []]);
        const overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
        expect([width, await page.evaluate(overflow)]).toEqual([width, 0]);
      }
    },
    60_000,
  );

  it.each(['dashboard', 'confirmation', 'live', 'replay'])(
    'the page %s logs no error, and loads nothing from another origin',
    async (name) => {
      const page = await person.open(urls[name]!, { colorScheme });
      await FILLED[name]!(page);
      expect(faults(page)).toEqual([]);
    },
  );
});

async function seriousViolations(page: Page) {
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}
