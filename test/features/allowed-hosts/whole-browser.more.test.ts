import { expect, it, vi } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import { startLocalPool, type LocalPool, type LocalPoolOptions } from '../../../src/local.js';
import { withPooledBrowser } from '../../../src/playwright.js';
import { OF_WHOLE_BROWSERS, useJudges } from '../../support/host-judges.js';
import { namespaceRefusal } from '../../support/far-browser.js';
import { managedBrowser } from '../../support/managed-browser.js';
import { useLocalPool } from '../../support/local.js';
import { useWholeBrowser } from '../../support/whole-browser.js';

useWholeBrowser();
const used = useLocalPool();
const { site, allowedHosts, kinds, loadAll, reached } = useJudges(OF_WHOLE_BROWSERS, {});
const poolOf = ({ pools: [name = ''], baseUrl, token }: LocalPool) =>
  new BrowserPool(name, { baseUrl, token });
const load = (options: object, pool = used.pool) =>
  withPooledBrowser(
    pool,
    async ({ page }) => {
      await page.goto(site.url);
      await loadAll(page);
      await expect.poll(() => page.title()).toBe('opened');
    },
    options,
  );
/** Makes all loads in another browser. */
const loadIn = async (how: LocalPoolOptions) => {
  await using local = await startLocalPool({ pools: [{ name: 'other', size: 1 }], ...how });
  await using pool = poolOf(local);
  await load({ allowedHosts: allowedHosts() }, pool);
};

it('no load of a whole Chromium reaches a host that is not allowed', async () => {
  await load({ allowedHosts: allowedHosts() });
  expect(reached()).toEqual([]);
});

it('each of these loads reaches another host without the option', async () => {
  await load({});
  expect(reached()).toEqual(kinds());
});

/** The last flag of this name replaces that of the local pool, which gives sandboxed frames no processes of their own. */
const OWN_PROCESSES = '--disable-features=Translate';
const NO_UDP = '--webrtc-ip-handling-policy=disable_non_proxied_udp';

it('no load of a whole Chromium whose WebRTC uses no UDP reaches a host that is not allowed', async () => {
  await loadIn({ args: [OWN_PROCESSES, NO_UDP] });
  expect(reached()).toEqual([]);
});

const refusal = namespaceRefusal();
it.skipIf(refusal !== undefined)(
  `no load of a whole Chromium with the policy WebRtcIPHandling does so${refusal ? ` (${refusal})` : ''}`,
  async () => {
    const executablePath = await managedBrowser({ WebRtcIPHandling: 'disable_non_proxied_udp' });
    await loadIn({ args: [OWN_PROCESSES], executablePath });
    expect(reached()).toEqual([]);
  },
);

it.each([
  ['with UDP', []],
  ['with a policy that leaves it some UDP', ['--webrtc-ip-handling-policy=default_public_interface_only']],
])(
  'refuses a browser %s whose sandboxed frames begin before WebRTC is removed from them',
  async (_how, args) => {
    await using local = await startLocalPool({ args: [OWN_PROCESSES, ...args] });
    await using pool = poolOf(local);
    const callback = vi.fn();
    await expect(withPooledBrowser(pool, callback, { allowedHosts: 'a.test' })).rejects.toThrow(
      /Start it with --disable-features=IsolateSandboxedIframes, or with --webrtc-ip-handling-policy/,
    );
    expect(callback).not.toHaveBeenCalled();
  },
);
