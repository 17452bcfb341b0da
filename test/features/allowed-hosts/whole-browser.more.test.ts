import { expect, it, vi } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { startLocalPool } from '../../../src/local.js';
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

it('refuses a browser whose sandboxed frames begin before WebRTC is removed from them', async () => {
  // The last flag of this name replaces that of the local pool, which gives sandboxed frames no processes of their own.
  await using local = await startLocalPool({ args: ['--disable-features=Translate'] });
  const { baseUrl, token } = local;
  await using pool = new BrowserPool(local.pools[0]!, { baseUrl, token });
  const callback = vi.fn();
  await expect(withPooledBrowser(pool, callback, { allowedHosts: 'a.test' })).rejects.toThrow(
    'Start it with --disable-features=IsolateSandboxedIframes',
  );
  expect(callback).not.toHaveBeenCalled();
});
