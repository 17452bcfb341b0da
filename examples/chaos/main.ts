/** Runs a scraping job on a local pool that causes faults on purpose, and checks that every task succeeds. */
import { BrowserPool } from 'pooled-browser';
import { startLocalPool, type LocalPoolFault } from 'pooled-browser/local';
import { mapPooledBrowsers } from 'pooled-browser/playwright';

const [seed = '7'] = process.argv.slice(2);
const faults: LocalPoolFault[] = [];

await using local = await startLocalPool({
  // A lost lease expires after six seconds without a connection.
  pools: [{ size: 2, timeoutSeconds: 6 }],
  chaos: {
    seed: Number(seed),
    faults: {
      status: 0.1,
      resetBefore: 0.05,
      resetAfter: 0.05,
      truncate: 0.05,
      refuseUpgrade: 0.1,
      resetSocket: 0.1,
      killBrowser: 0.1,
    },
  },
  onLog: (event) => void (event.type === 'chaos' && faults.push(event)),
});
await using pool = new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token });

const pages = Array.from({ length: 40 }, (_, index) => `data:text/html,<title>Page ${index + 1}</title>`);
const titles = mapPooledBrowsers(
  pool,
  pages,
  async ({ page, input }) => {
    await page.goto(input);
    return page.title();
  },
  { concurrency: 2, tasksPerLease: 2, retries: 4, retry: { minTimeout: 50, maxTimeout: 500 } },
);
const failed: unknown[] = [];
for await (const outcome of titles) if (outcome.status === 'rejected') failed.push(outcome.reason);

for (const { at, nth, fault } of faults) console.log(`${at} ${nth}: ${fault}`);
console.log(
  `Seed ${seed}: ${faults.length} faults; ${pages.length - failed.length} of ${pages.length} tasks succeeded.`,
);
if (failed.length > 0) throw new AggregateError(failed, `Repeat these faults with the seed ${seed}.`);
