import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { browserless } from '../../src/services.js';
import { expectNoSecrets } from '../support/collected.js';
import { TOKEN } from '../support/fake-service.js';
import { describeWithReal, RealBrowserless } from '../support/real-services.js';
import { useWholeBrowser } from '../support/whole-browser.js';

useWholeBrowser();

describeWithReal('browserless', 'Browserless', () => {
  let server: RealBrowserless;
  beforeAll(async () => {
    server = await RealBrowserless.start({ concurrent: 1 });
  }, 120_000);
  afterAll(() => server?.[Symbol.asyncDispose]());

  const open = () => {
    const service = browserless({ baseUrl: server.url, launch: { args: ['--no-sandbox'] } });
    return new BrowserPool('mine', { service, token: TOKEN });
  };
  const page = 'data:text/html,<title>driven</title>';

  it('leases a browser for each connection, with both libraries, one at a time', async () => {
    await using pool = open();
    let leased = 0;
    const visit = async ({
      page: one,
    }: {
      page: { goto(to: string): Promise<unknown>; title(): Promise<string> };
    }) => {
      expect(++leased).toBe(1);
      await one.goto(page);
      const title = await one.title();
      leased--;
      return title;
    };
    const runs = await Promise.all([
      playwright.withPooledBrowser(pool, visit),
      puppeteer.withPooledBrowser(pool, visit),
      playwright.withPooledBrowser(pool, visit),
      puppeteer.withPooledBrowser(pool, visit),
    ]);
    for (const run of runs) {
      expect(run).toMatchObject({ value: 'driven', released: 'destroyed', cleanupErrors: [] });
      expectNoSecrets(run);
    }
  });

  it('is waited for while it restarts', async () => {
    await using pool = open();
    await server.kill();
    const run = playwright.withPooledBrowser(pool, ({ page: one }) => one.goto(page).then(() => one.title()));
    await sleep(1000);
    await server.begin();
    expect(await run).toMatchObject({ value: 'driven', released: 'destroyed' });
  });
});
