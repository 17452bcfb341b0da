/** A process that takes jobs off the queue: each leases a browser for as long as it takes. */
import { Worker } from 'bullmq';
import { BrowserPool } from 'pooled-browser';
import { withPooledBrowser } from 'pooled-browser/playwright';

const [name, redisPort] = process.argv.slice(2);
const pool = new BrowserPool('default');

const worker = new Worker<{ url: string }, string>(
  'pages',
  async ({ data: { url } }) => {
    const { value } = await withPooledBrowser(
      pool,
      async ({ page }) => {
        const response = await page.goto(url);
        if (!response?.ok()) throw new Error(`${url} answered with ${response?.status()}`);
        return page.title();
      },
      // Should this process be killed in mid-job, its browser is given back all the same.
      { watch: true, context: 'new', replays: 'off' },
    );
    return value;
  },
  {
    name: name!,
    connection: { host: '127.0.0.1', port: Number(redisPort) },
    // As many jobs at once as this process may lease browsers.
    concurrency: 1,
    // A job whose worker has not been heard of for so long is another one's. BullMQ's defaults are 30 seconds each.
    lockDuration: 4000,
    stalledInterval: 1000,
    // How often one job may lose its worker.
    maxStalledCount: 3,
  },
);

process.once('SIGTERM', async () => {
  await worker.close();
  await pool.close();
});
