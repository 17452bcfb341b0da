import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrowserPool } from '../../../src/index.js';
import * as withPlaywright from '../../../src/playwright.js';
import * as withPuppeteer from '../../../src/puppeteer.js';
import { browserless, cdp, webdriver, type BrowserService } from '../../../src/services.js';
import { usePerson } from '../../local/pages/support.js';
import { startBrowserless } from '../../support/browserless-server.js';
import { Chromedriver, describeWithChromedriver } from '../../support/chromedriver.js';
import { startChromium, type Chromium } from '../../support/chromium.js';
import { TOKEN } from '../../support/fake-service.js';
import { useWholeBrowser } from '../../support/whole-browser.js';
import { COMPLETE, openReplay, readReplay, RECORD, told } from './support.js';

// On the headless shell, chromedriver's own page for WebDriver BiDi is the first one.
useWholeBrowser();
const folder = mkdtempSync(join(tmpdir(), 'recorded-services-'));
afterAll(() => rmSync(folder, { recursive: true }));
const person = usePerson();

const PAGE = 'data:text/html,<title>Shop</title><h1>Shop</h1><button>Buy</button>';

/** The part of both libraries' pages that these tests use. */
interface AnyPage {
  goto(url: string): Promise<unknown>;
  click(selector: string): Promise<unknown>;
}
const visit = async ({ page }: { page: AnyPage }) => {
  await page.goto(PAGE);
  await page.click('button');
  await sleep(1_500);
};

const PUPPETEER = withPuppeteer as unknown as typeof withPlaywright;

/** Records a lease, and opens its replay. */
async function expectReplay(
  { withPooledBrowser }: Pick<typeof withPlaywright, 'withPooledBrowser'>,
  service: BrowserService,
  { name, ...options }: { name: string; protocol?: 'bidi' },
): Promise<void> {
  await using pool = new BrowserPool('shop', { service: service as never, token: TOKEN });
  const all = { ...RECORD, name, recording: { folder }, ...options };
  const run = await withPooledBrowser(pool, visit as never, all as object);
  expect(run).toMatchObject({ replayStatus: 'ready', cleanupErrors: [] });
  expect(run.replays).toMatchObject([{ name, recorded_by: 'client', access: 'public' }]);
  const [replay] = run.replays;
  const { facts, files } = readReplay(replay!);
  expect(files).toEqual(COMPLETE);
  expect(facts).toMatchObject({ state: 'ready', result: 'succeeded', service: service.name, pool: 'shop' });
  expect(told(facts, 'call')).toEqual([
    expect.stringContaining('call page.goto'),
    'call page.click("button")',
  ]);
  expect(told(facts, 'navigation', 'page-opened').join()).toContain('Shop');
  const page = await openReplay(person, replay!.replay_view_url!, name);
  await page.getByRole('link', { name: /page\.click/ }).waitFor();
}

describe('this process records a lease', () => {
  let browser: Chromium;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it('of Browserless, within its one connection', async () => {
    await using server = await startBrowserless({ browserUrl: browser.url });
    const service = browserless({ baseUrl: server.baseUrl });
    await expectReplay(withPlaywright, service, { name: 'browserless-playwright' });
    await expectReplay(PUPPETEER, service, { name: 'browserless-puppeteer' });
    expect(server).toMatchObject({ urls: { length: 2 } });
    expect(server.refused()).toBe(0);
  });

  it('of a service of your own', async () => {
    const service: BrowserService = { ...cdp(browser.url), name: 'grid-of-our-own' };
    await expectReplay(withPlaywright, service, { name: 'own' });
  });
});

describeWithChromedriver('this process records a lease of chromedriver', () => {
  let driver: Chromedriver;
  beforeAll(async () => (driver = await Chromedriver.start()));
  afterAll(() => driver?.[Symbol.asyncDispose]());
  /** @param grant Changes what the session offers. */
  const own = (change: Partial<BrowserService> = {}): BrowserService => {
    const { url, capabilities } = driver;
    return { ...webdriver({ url, capabilities }), ...change };
  };

  it('over CDP', () => expectReplay(withPlaywright, own(), { name: 'webdriver-cdp' }));

  it('over CDP, while the library drives it over WebDriver BiDi', () =>
    expectReplay(PUPPETEER, own(), { name: 'webdriver-bidi', protocol: 'bidi' }));

  it('over WebDriver BiDi, if the session has nothing else', () => {
    const { grant } = own();
    const onlyBidi = own({ grant: (...args) => ({ ...grant(...args), cdpUrl: undefined }) });
    return expectReplay(PUPPETEER, onlyBidi, { name: 'webdriver-only-bidi', protocol: 'bidi' });
  });
});

it('lists the replays of a folder by the names of leases and tasks, also of a lease that another process began', async () => {
  await using browser = await startChromium();
  await using pool = new BrowserPool('shop', { service: cdp(browser.url) });
  const own = join(folder, 'listed');
  const options = { ...RECORD, recording: { folder: own } };
  const { leaseBrowser, attachBrowser, mapPooledBrowsers } = withPlaywright;
  const held = await leaseBrowser(pool, { ...options, name: 'held' });
  await held.page.goto(PAGE);
  const attached = await attachBrowser(await held.detach(), { pool, ...options });
  await attached.page.goto(PAGE);
  expect((await attached.release()).replays).toMatchObject([{ name: 'held' }]);
  for (const inputs of [['only'], ['first', 'second']]) {
    const job = mapPooledBrowsers(pool, inputs, visit as never, { ...options, name: 'job', concurrency: 1 });
    for await (const outcome of job) expect(outcome.status).toBe('fulfilled');
  }
  const list = join(own, 'replays.html');
  expect(readFileSync(list, 'utf8')).not.toContain(TOKEN);
  const page = await person.open(pathToFileURL(list).href);
  // The name of a recording is that of its only task.
  const names = () => page.getByRole('heading', { level: 2 }).getByRole('link').allTextContents();
  await expect.poll(names).toEqual(['job-1', 'only', 'held', 'held']);
});
