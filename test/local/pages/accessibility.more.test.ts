import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { startApi } from '../support.js';
import { Replays } from '../replays/support.js';
import { faults, seriousViolations, usePerson } from './support.js';

const api = await startApi({
  pools: [{ size: 2, timeoutSeconds: 600 }],
  quirks: { liveViewsHeadless: true },
});
/** Widths of a phone, a half window and a laptop, in pixels. */
const WIDTHS = [390, 900, 1280];
const person = usePerson();
const urls: Record<string, string> = { dashboard: api.pool.dashboardUrl };

beforeAll(async () => {
  const replays = new Replays(api);
  const ended = await api.lease({ name: 'an-ended.lease-whose-name-is-longer-than-a-phone-is-wide.spec.ts' });
  urls['ended live view'] = ended.browser_live_view_url!;
  await replays.record(ended);
  await api.release(ended);
  const session = await api.lease({ name: 'a.lease', tags: { worker: '1' } });
  urls['live'] = session.browser_live_view_url!;
  const replay = await replays.record(session, async () => {
    const view = await person.open(urls['live']!);
    await view.getByLabel('Address').fill('data:text/html,<h1>A page</h1>');
    await view.keyboard.press('Enter');
    await view.getByRole('tab', { name: /A page|data:/ }).waitFor();
  });
  urls['replay'] = replay.replay_view_url!;
  urls['confirmation'] = urls['dashboard']!;
  urls['dead link'] = replay.replay_view_url!.replace(/=.*/, '=0');
});

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
  replay: async (page) =>
    await page
      .getByRole('link', { name: /Navigation/ })
      .first()
      .waitFor(),
};

// Dark pages differ in their colours only, so one width shows all of them.
describe.each([
  { colorScheme: 'light', widths: WIDTHS },
  { colorScheme: 'dark', widths: [1280] },
] as const)('in $colorScheme', ({ colorScheme, widths }) => {
  it.each(Object.keys(FILLED))(
    'the page %s has no serious accessibility violation, logs no error, and loads nothing from another origin',
    async (name) => {
      const page = await person.open(urls[name]!, { colorScheme });
      await FILLED[name]!(page);
      expect(faults(page).filter((fault) => !REFUSALS[name]?.test(fault))).toEqual([]);
      for (const width of widths) {
        await page.setViewportSize({ width, height: 800 });
        expect([width, await seriousViolations(page)]).toEqual([width, []]);
        const overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
        expect([width, await page.evaluate(overflow)]).toEqual([width, 0]);
      }
      await page.context().close();
    },
  );
});

/** The messages of the browser about the requests that the service refuses to these pages. */
const REFUSALS: Record<string, RegExp> = {
  'dead link': /^Failed to load resource: .* a status of 401/,
};
