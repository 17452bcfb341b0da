import { afterAll, beforeAll, test } from '@jest/globals';
import { BrowserPool } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

/**
 * Leases one browser for all tests of a file; `testPage` is a `test` whose function gets its page. Names the replays
 * for each test that failed: Jest does not tell its hooks which one did.
 */
export function useLeasedBrowser(idOrName) {
  const pool = new BrowserPool(idOrName);
  const failed = [];
  let browser;

  beforeAll(async () => {
    browser = await leaseBrowser(pool);
  }, 60_000);
  afterAll(async () => {
    const { replays = [] } = (await browser?.release()) ?? {};
    await pool.close();
    const links = replays.map(({ replay_view_url: link }) => link).join(' ') || 'nothing was recorded';
    for (const name of failed) process.stderr.write(`Replay of "${name}": ${links}\n`);
  }, 60_000);

  return (name, fn) =>
    test(name, async () => {
      try {
        await fn(browser.page);
      } catch (error) {
        failed.push(name);
        throw error;
      }
    });
}
