/** Runs a Crawlee crawler on leased browsers. */
import { Configuration, log, LogLevel, PlaywrightCrawler } from '@crawlee/playwright';
import { chromium, type BrowserContextOptions, type BrowserType } from 'playwright-core';
import { BrowserPool, serveProxy } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';
import { openShop } from './shop.js';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });
await using shop = process.argv[2] ? undefined : await openShop();
log.setLevel(LogLevel.WARNING);

// Each connection leases a browser. Crawlee closes the connection instead of the browser.
const counts = { leased: 0, released: 0 };
await using proxy = await serveProxy(pool, {
  onClient: ({ type }) => {
    if (type === 'leased' || type === 'released') counts[type]++;
  },
});
const launcher = {
  name: () => 'chromium',
  launch: () => chromium.connectOverCDP(proxy.url),
} as unknown as BrowserType;

const titles: string[] = [];
const crawler = new PlaywrightCrawler(
  {
    // A persistent profile would be a folder on this machine.
    launchContext: { launcher, useIncognitoPages: true },
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
// Releases also a browser that Crawlee did not close.
await proxy.close();

console.log(`Crawled: ${titles.toSorted().join(', ')}`);
console.log(`Leases released: ${counts.released}, still held: ${counts.leased - counts.released}`);

/** Removes Crawlee's proxy on this machine, which a remote browser cannot reach. Keeps a proxy of yours. */
function withoutLocalProxy(_id: string, _controller: unknown, options?: BrowserContextOptions): void {
  if (options && !options.proxy) Object.assign(options, { proxy: undefined });
}
