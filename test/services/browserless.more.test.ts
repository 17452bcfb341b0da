import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPool, leaseBrowser } from '../../src/index.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { browserless } from '../../src/services.js';
import { rejection } from '../pool/support.js';
import { expectNoSecrets } from '../support/collected.js';
import { TOKEN } from '../support/fake-service.js';
import { plainConnector } from '../support/plain-connector.js';
import { jobThroughRestart } from '../support/real-jobs.js';
import { describeWithReal, RealBrowserless } from '../support/real-services.js';

/** Milliseconds after which the service closes a connection that asks for no other time. */
const LIMIT = 60_000;

describeWithReal('browserless', 'Browserless', () => {
  let server: RealBrowserless;
  beforeAll(async () => {
    server = await RealBrowserless.start({ concurrent: 1, timeout: LIMIT });
  }, 120_000);
  afterAll(() => server?.[Symbol.asyncDispose]());

  const open = (timeout?: number) => {
    const service = browserless({ baseUrl: server.url, launch: { args: ['--no-sandbox'] }, timeout });
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

  it('is asked for a browser at a pace while it is full, and each of six callers gets its one place', async () => {
    await using pool = open();
    const refusals: number[] = [];
    const onEvent = ({ type }: { type: string }) => {
      if (type === 'waiting') refusals.push(performance.now());
    };
    const held = await leaseBrowser(pool, { connector: plainConnector });
    const began = performance.now();
    const visit = async ({ page: one }: { page: { title(): Promise<string> } }) => one.title();
    const runs = Array.from({ length: 6 }, () => playwright.withPooledBrowser(pool, visit, { onEvent }));
    await sleep(5000);
    // Each refusal is one upgrade.
    const inTime = refusals.filter((time) => time - began < 5000);
    expect(inTime.length).toBeLessThanOrEqual(30);
    await expect.poll(() => refusals.length).toBeGreaterThan(3);
    await held.release();
    for (const run of await Promise.all(runs))
      expect(run).toMatchObject({ value: '', released: 'destroyed' });
  });

  it('closes a connection after its own time, and after the time that is asked for', async () => {
    await using pool = open(5000);
    const began = performance.now();
    const error = await rejection(playwright.withPooledBrowser(pool, () => new Promise(() => {})));
    expect(error).toMatchObject({ name: 'BrowserLostError' });
    expect(error.message).toContain('browserless({ timeout: 300_000 })');
    expect(performance.now() - began).toBeLessThan(LIMIT);
    await expect.poll(() => server.running()).toBe(0);
  });

  it('is waited for while it restarts, also after it was killed with a leased browser', async () => {
    await using pool = open();
    const lost = rejection(
      playwright.withPooledBrowser(pool, async ({ page: one }) => {
        await server.kill();
        await one.title();
      }),
    );
    expect(await lost).toMatchObject({ name: 'BrowserLostError' });
    const run = playwright.withPooledBrowser(pool, ({ page: one }) => one.goto(page).then(() => one.title()));
    await sleep(1000);
    await server.begin();
    expect(await run).toMatchObject({ value: 'driven', released: 'destroyed' });
  });

  it(
    'does each input of a job once, also when it is killed in the middle',
    { timeout: 180_000 },
    async () => {
      await using pool = open();
      const { outcomes } = await jobThroughRestart(pool, server, 12);
      expect(outcomes.map(String)).toEqual(Array(12).fill('fulfilled'));
      await expect.poll(() => server.running()).toBe(0);
    },
  );
});
