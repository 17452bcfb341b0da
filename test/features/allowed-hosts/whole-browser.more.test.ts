import { expect, it } from 'vitest';
import { withPooledBrowser } from '../../../src/playwright.js';
import { OF_WHOLE_BROWSERS, useJudges } from '../../support/host-judges.js';
import { useLocalPool } from '../../support/local.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

useWholeBrowser();
const used = useLocalPool();
const { site, allowedHosts, kinds, loadAll, reached } = useJudges(OF_WHOLE_BROWSERS, {});
const load = (options: object) =>
  withPooledBrowser(
    used.pool,
    async ({ page }) => {
      await page.goto(site.url);
      await loadAll(page);
      await expect.poll(() => page.title()).toBe('opened');
    },
    options,
  );

it('no load of a whole Chromium reaches a host that is not allowed', async () => {
  await load({ allowedHosts: allowedHosts() });
  expect(reached()).toEqual([]);
});

it('each of these loads reaches another host without the option', async () => {
  await load({});
  expect(reached()).toEqual(kinds());
});
