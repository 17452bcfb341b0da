/** One worker. Any number of them, on any machines, share the queue and the pool. */
import { workPooledBrowsers } from 'pooled-browser/bullmq';
import { playwright, type PlaywrightHandles } from 'pooled-browser/playwright';

const [workerName] = process.argv.slice(2);
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());

// Redis is at REDIS_URL, the pool at BROWSER_POOL_BASE_URL.
await workPooledBrowsers<PlaywrightHandles, string, string>(
  'pages',
  'default',
  async ({ page, input }) => {
    const response = await page.goto(input);
    if (!response?.ok()) throw new Error(`${input} answered with ${response?.status()}`);
    return page.title();
  },
  {
    connector: playwright(),
    workerName: workerName!,
    // At most this many browsers; pagesPerLease: 2 would run two tasks at once in each.
    concurrency: 1,
    replays: 'off',
    signal: stop.signal,
  },
);
