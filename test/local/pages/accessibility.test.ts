import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { startApi } from '../support.js';
import { faults, record, usePerson } from './support.js';

const api = await startApi({ pools: [{ size: 2 }], quirks: { liveViewsHeadless: true } });
const person = usePerson();
const urls: Record<string, string> = { dashboard: api.pool.dashboardUrl };

beforeAll(async () => {
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
}, 120_000);

/** Wait until each page shows its content. */
const FILLED: Record<string, (page: Page) => Promise<unknown>> = {
  dashboard: (page) => page.getByRole('link', { name: 'Open the replay of a.lease' }).waitFor(),
  live: (page) => page.locator('canvas[data-pictures]').waitFor(),
  replay: (page) =>
    page
      .getByRole('button', { name: /Navigation/ })
      .first()
      .waitFor(),
};

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  it.each(Object.keys(FILLED))('the page %s has no serious accessibility violation', async (name) => {
    // The page's policy refuses the injected axe script.
    const page = await person.open(urls[name]!, { colorScheme, bypassCSP: true });
    await FILLED[name]!(page);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(),
    );
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    expect(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  });

  it.each(Object.keys(FILLED))(
    'the page %s logs no error, and loads nothing from another origin',
    async (name) => {
      const page = await person.open(urls[name]!, { colorScheme });
      await FILLED[name]!(page);
      expect(faults(page)).toEqual([]);
    },
  );
});
