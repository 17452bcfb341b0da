import { describe, expect, it } from 'vitest';
import { BrowserPool } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { browserless } from '../../src/services.js';

/**
 * A running Browserless with CONCURRENT=1 and QUEUED=0: its package @browserless.io/browserless needs Node 24 and 200 other
 * packages, so the suite does not install it. `http://127.0.0.1:3000?token=…`
 */
const { BROWSERLESS_URL: url } = process.env;
const SKIPPED = url ? '' : ' (skipped: BROWSERLESS_URL names no server with CONCURRENT=1 and QUEUED=0)';

describe.skipIf(!url)(`browserless${SKIPPED}`, () => {
  const open = () => {
    const { origin, searchParams } = new URL(url!);
    const service = browserless({ baseUrl: origin, launch: { args: ['--no-sandbox'] } });
    return new BrowserPool('mine', { service, token: searchParams.get('token')! });
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
      expect(JSON.stringify(run)).not.toContain(new URL(url!).searchParams.get('token'));
    }
  });
});
