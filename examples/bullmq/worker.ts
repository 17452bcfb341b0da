/** A worker process: each job leases a browser until the job ends. */
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
      // The browser is released even if this process is killed during a job.
      { releaseOnCrash: true, context: 'new', replays: 'off' },
    );
    return value;
  },
  {
    name: name!,
    connection: { host: '127.0.0.1', port: Number(redisPort) },
    // At most this many jobs, and so browsers, at the same time.
    concurrency: 1,
    // Milliseconds after which another worker takes over the job of a dead worker. BullMQ's defaults are 30,000.
    lockDuration: 4000,
    stalledInterval: 1000,
    // How many workers one job may lose.
    maxStalledCount: 3,
  },
);

process.once('SIGTERM', async () => {
  await worker.close();
  await pool.close();
});
