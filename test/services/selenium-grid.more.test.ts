import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { webdriver, type WebDriverSession } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { startCli } from '../cli/support.js';
import { jobThroughRestart } from '../support/real-jobs.js';
import { describeWithReal, SeleniumGrid } from '../support/real-services.js';
import { useWholeBrowser } from '../support/whole-browser.js';

// On the headless shell, chromedriver's own page for WebDriver BiDi is the first one.
useWholeBrowser();

describeWithReal('grid', 'Selenium Grid', () => {
  /** With one browser, and a queue that gives up after 20 s, which include the start of the browser: it takes 2 s, or many. */
  let grid: SeleniumGrid;
  beforeAll(async () => {
    grid = await SeleniumGrid.start({ sessions: 1, queueTimeout: 20 });
  }, 120_000);
  afterAll(() => grid?.[Symbol.asyncDispose]());
  afterEach(async () => {
    await expect.poll(() => grid.sessions()).toEqual([]);
  });

  const poolOf = (capabilities = {}) =>
    new BrowserPool<WebDriverSession>('grid', { service: webdriver({ url: grid.url, capabilities }) });
  const page = 'data:text/html,<title>driven</title>';

  it.each<[string, (pool: BrowserPool<WebDriverSession>) => Promise<object>]>([
    [
      'Playwright by se:cdp',
      (pool) => playwright.withPooledBrowser(pool, (on) => on.page.goto(page).then(() => on.page.title())),
    ],
    [
      'Puppeteer over CDP',
      (pool) => puppeteer.withPooledBrowser(pool, (on) => on.page.goto(page).then(() => on.page.title())),
    ],
    [
      'Puppeteer over WebDriver BiDi',
      (pool) =>
        puppeteer.withPooledBrowser(pool, (on) => on.page.goto(page).then(() => on.page.title()), {
          protocol: 'bidi',
        }),
    ],
  ])('leases a browser for %s, and ends its session', async (_way, use) => {
    await using pool = poolOf();
    const run = await use(pool);
    expect(run).toMatchObject({ value: 'driven', released: 'destroyed', cleanupErrors: [] });
  });

  it('waits for a browser longer than the queue of the Grid does', async () => {
    await using pool = poolOf();
    const held = await playwright.leaseBrowser(pool);
    const refusals: string[] = [];
    const waiting = playwright.withPooledBrowser(pool, ({ session }) => session.sessionId, {
      onEvent: (event) => {
        if (event.type === 'waiting' && event.error) refusals.push(event.error.message);
      },
    });
    await expect.poll(() => refusals).toHaveLength(1);
    expect(refusals[0]).toMatch(/timed out/i);
    await held.release();
    const run = await waiting;
    expect(run).toMatchObject({ released: 'destroyed', cleanupErrors: [] });
    expect(run.acquireAttempts).toBeGreaterThan(1);
  });

  it('reports in its words at once why it can not start a browser', async () => {
    await using pool = poolOf({ 'goog:chromeOptions': { extensions: ['none'] } });
    const error = await rejection(playwright.withPooledBrowser(pool, () => {}));
    expect(error).toMatchObject({ name: 'PoolServiceError', code: 'session not created', status: 500 });
    expect(error.message).toContain('cannot process extension');
  });

  it(
    'does each input of a job once, also when it is killed in the middle',
    { timeout: 180_000 },
    async () => {
      await using pool = poolOf();
      const { outcomes } = await jobThroughRestart(pool, grid, 12);
      expect(outcomes.map(String)).toEqual(Array(12).fill('fulfilled'));
    },
  );

  it('ends the session of a process that was killed', async () => {
    const client = startCli(['acquire', 'grid', '--release-on-crash'], {
      BROWSER_POOL_SERVICE: 'webdriver',
      BROWSER_POOL_BASE_URL: grid.url,
    });
    await client.prints(/^session +\w+$/m);
    expect(await grid.sessions()).toHaveLength(1);
    client.child.kill('SIGKILL');
    await expect.poll(() => grid.sessions()).toEqual([]);
  });
});
