/** Runs a Crawlee crawler on leased browsers. */
import { Configuration, log, LogLevel, PlaywrightCrawler } from '@crawlee/playwright';
import { BrowserPool } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { LeasedChromium, withoutLocalProxy } from './leased-chromium.js';
import { openShop } from './shop.js';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });
await using chromium = new LeasedChromium(pool);
await using shop = process.argv[2] ? undefined : await openShop();
log.setLevel(LogLevel.WARNING);

const titles: string[] = [];
const crawler = new PlaywrightCrawler(
  {
    launchContext: { launcher: chromium.launcher, useIncognitoPages: true },
    browserPoolOptions: {
      useFingerprints: false,
      prePageCreateHooks: [withoutLocalProxy],
      operationTimeoutSecs: 60, // to open a page; 15 by default
    },
    maxConcurrency: 2,
    requestHandler: async ({ page, enqueueLinks }) => {
      titles.push(await page.title());
      await enqueueLinks();
    },
  },
  new Configuration({ persistStorage: false }),
);
await crawler.run([process.argv[2] ?? shop!.url]);

console.log(`Crawled: ${titles.toSorted().join(', ')}`);
const { leased, released } = chromium.counts;
console.log(`Leases released: ${released}, still held: ${leased - released}`);
