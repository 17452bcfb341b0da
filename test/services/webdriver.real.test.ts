import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { webdriver, type WebDriverSession } from '../../src/services.js';
import { Chromedriver, describeWithChromedriver } from '../support/chromedriver.js';
import { useWholeBrowser } from '../support/whole-browser.js';
import { rejection } from '../pool/support.js';

// On the headless shell, chromedriver's own page for WebDriver BiDi is the first one.
useWholeBrowser();

describeWithChromedriver('chromedriver', () => {
  let driver: Chromedriver;
  beforeAll(async () => (driver = await Chromedriver.start()));
  afterAll(() => driver?.[Symbol.asyncDispose]());

  const poolOf = (limit?: number) => {
    const { url, capabilities } = driver;
    return new BrowserPool<WebDriverSession>('mine', { service: webdriver({ url, capabilities }), limit });
  };

  it.each<
    [
      string,
      (pool: BrowserPool<WebDriverSession>, page: string) => Promise<{ value: unknown; released: string }>,
    ]
  >([
    [
      'Puppeteer over WebDriver BiDi',
      (pool, url) =>
        puppeteer.withPooledBrowser(pool, ({ page }) => page.goto(url).then(() => page.title()), {
          protocol: 'bidi',
        }),
    ],
    [
      'Playwright over CDP',
      (pool, url) =>
        playwright.withPooledBrowser(pool, ({ page }) => page.goto(url).then(() => page.title())),
    ],
    [
      'Puppeteer over CDP',
      (pool, url) => puppeteer.withPooledBrowser(pool, ({ page }) => page.goto(url).then(() => page.title())),
    ],
  ])('leases a browser for %s, and ends its session', async (_way, use) => {
    await using pool = poolOf();
    const run = await use(pool, 'data:text/html,<title>driven</title>');
    expect(run).toMatchObject({ value: 'driven', released: 'destroyed', cleanupErrors: [] });
    expect(run).toMatchObject({ replays: [], replayStatus: 'none' });
    expect(await driver.sessions()).toEqual([]);
  });

  it('leases no more sessions at once than the limit', async () => {
    await using pool = poolOf(1);
    const counts = await Promise.all(
      [1, 2, 3, 4].map(() =>
        playwright.withPooledBrowser(pool, async ({ session }) => {
          expect(session.capabilities['browserName']).toMatch(/chrom/);
          return (await driver.sessions()).length;
        }),
      ),
    );
    expect(counts.map(({ value }) => value)).toEqual([1, 1, 1, 1]);
    expect(await driver.sessions()).toEqual([]);
  });

  it('reports at once why no session can be created', async () => {
    const capabilities = { 'goog:chromeOptions': { binary: '/none' } };
    await using pool = new BrowserPool('mine', { service: webdriver({ url: driver.url, capabilities }) });
    const error = await rejection(playwright.withPooledBrowser(pool, () => {}));
    expect(error).toMatchObject({ name: 'PoolServiceError', status: 500 });
    expect(error.message).toContain('no chrome binary at /none');
  });
});
