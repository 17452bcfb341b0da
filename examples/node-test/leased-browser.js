import { after, afterEach, before } from 'node:test';
import { BrowserPool } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

/** Leases one browser for all tests of a file, and prints its replays for each failed test. */
export function useLeasedBrowser(idOrName) {
  const pool = new BrowserPool(idOrName);
  const failed = [];
  let lease;

  before(async () => {
    lease = await leaseBrowser(pool);
  });
  afterEach(({ name, passed }) => {
    if (!passed) failed.push(name);
  });
  after(async () => {
    const { replays = [] } = (await lease?.release()) ?? {};
    await pool.close();
    const links = replays.map(({ replay_view_url: link }) => link).join(' ') || 'nothing was recorded';
    for (const name of failed) console.log(`Replay of "${name}": ${links}`);
  });

  return {
    get page() {
      return lease.page;
    },
  };
}
