import { afterAll, beforeAll, test } from '@jest/globals';
import { BrowserPool } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

/**
 * Leases one browser for all tests of a file, and returns a `test` whose function receives the page. Prints the replays
 * for each failed test. Jest's hooks do not know which test failed, so the returned `test` records it.
 */
export function useLeasedBrowser(idOrName) {
  const pool = new BrowserPool(idOrName);
  const failed = [];
  let lease;

  beforeAll(async () => {
    lease = await leaseBrowser(pool);
  }, 60_000);
  afterAll(async () => {
    const { replays = [] } = (await lease?.release()) ?? {};
    await pool.close();
    const links = replays.map(({ replay_view_url: link }) => link).join(' ') || 'nothing was recorded';
    for (const name of failed) process.stderr.write(`Replay of "${name}": ${links}\n`);
  }, 60_000);

  return (name, fn) =>
    test(name, async () => {
      try {
        await fn(lease.page);
      } catch (error) {
        failed.push(name);
        throw error;
      }
    });
}
