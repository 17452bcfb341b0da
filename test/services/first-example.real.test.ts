import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { withPooledBrowser } from '../../src/playwright.js';
import { namedPool } from '../../src/pool/browser-pool.js';
import { startBrowserless } from '../support/browserless-server.js';
import { Chromedriver, describeWithChromedriver } from '../support/chromedriver.js';
import { startChromium, type Chromium } from '../support/chromium.js';
import { CONTRACTS, ContractServer } from '../support/contract-server.js';
import { TOKEN } from '../support/fake-service.js';
import { useLocalPool } from '../support/local.js';
import { useWholeBrowser } from '../support/whole-browser.js';

/** The first example of the README, with a page that needs no network. Only the environment differs. */
async function firstExample() {
  const { value, replays, released, cleanupErrors } = await withPooledBrowser(
    'checkout-tests',
    async ({ page }) => {
      await page.goto('data:text/html,<title>Example Domain</title>');
      return page.title();
    },
  );
  await namedPool('checkout-tests').close();
  // Why a browser was not reused.
  return { value, replays, released, reasons: cleanupErrors.map(String) };
}

function environment(service: string, baseUrl: string, token = TOKEN): void {
  vi.stubEnv('BROWSER_POOL_SERVICE', service);
  vi.stubEnv('BROWSER_POOL_BASE_URL', baseUrl);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', token);
}

const CLEAN = { released: 'reused', reasons: [] };

// A browser that a busy machine does not clean in time is not reused.
describe('the first example runs unchanged', { retry: 1 }, () => {
  const used = useLocalPool({ pools: [{ name: 'checkout-tests', size: 1 }] });
  let browser: Chromium;
  beforeAll(async () => (browser = await startChromium()));
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it('on kernel', async () => {
    environment('kernel', used.local.baseUrl, used.local.token);
    expect(await firstExample()).toEqual({ value: 'Example Domain', replays: [], ...CLEAN });
  });

  it('on cdp', async () => {
    environment('cdp', `http://${new URL(browser.url).host}`, '');
    expect(await firstExample()).toEqual({ value: 'Example Domain', replays: [], ...CLEAN });
  });

  it('on browserless, a browser for each connection', async () => {
    await using server = await startBrowserless({ browserUrl: browser.url });
    environment('browserless', server.baseUrl);
    expect(await firstExample()).toEqual({
      value: 'Example Domain',
      replays: [],
      released: 'destroyed',
      reasons: [],
    });
  });

  it.each(CONTRACTS.filter(({ name }) => name !== 'browserless sessions'))(
    'on a server with the contract of $name',
    async (contract) => {
      await using server = await ContractServer.start(contract);
      server.browserUrl = browser.url;
      environment(contract.service.name, server.baseUrl);
      expect(await firstExample()).toMatchObject({ value: 'Example Domain', released: 'destroyed' });
      expect([server.sessions.length, server.active.length]).toEqual([1, 0]);
    },
  );
});

describeWithChromedriver('the first example runs unchanged', () => {
  it('on webdriver with chromedriver', async () => {
    // On the headless shell, chromedriver's own page for WebDriver BiDi is the first one.
    useWholeBrowser();
    await using driver = await Chromedriver.start();
    await using server = await driver.serveWithCapabilities();
    environment('webdriver', server.url, '');
    expect(await firstExample()).toEqual({
      value: 'Example Domain',
      replays: [],
      released: 'destroyed',
      reasons: [],
    });
    expect(await driver.sessions()).toEqual([]);
  });
});
