// Compiled in a strict project, with the types of the installed libraries.
import type { PlaywrightTestConfig } from '@playwright/test';
import { BrowserPool, runOf, type BrowserSession, type Replay } from 'pooled-browser';
import { enqueueInputs } from 'pooled-browser/bullmq';
import { startLocalPool } from 'pooled-browser/local';
import { leaseBrowser, mapPooledBrowsers, withPooledBrowser } from 'pooled-browser/playwright';
import { expect, test as pooled, type PooledFixtures } from 'pooled-browser/playwright-test';
import * as puppeteer from 'pooled-browser/puppeteer';
import { createTest, test, type ProvidedOptions } from 'pooled-browser/vitest';

export const config: PlaywrightTestConfig<object, PooledFixtures> = { use: { pooledBrowser: { pool: 'a' } } };
export const provided: ProvidedOptions = { pool: 'scrapers', scope: 'file' };

pooled('has a page', async ({ page }) => expect(page).toHaveTitle('Hello'));
test('has a page', async ({ page, session }) => session.session_id + (await page.title()));
createTest(puppeteer.leaseBrowser)('has a page', async ({ page }) =>
  page.setViewport({ width: 8, height: 6 }),
);

export async function visit(pool: BrowserPool): Promise<string> {
  const run = await withPooledBrowser(pool, async ({ page, session }) => {
    const { session_id }: BrowserSession = session;
    return session_id + (await page.title());
  });
  const replays: readonly Replay[] = run.replays;
  return run.value + replays.length + runOf(run)?.session?.session_id;
}

export async function lease(): Promise<string[]> {
  await using local = await startLocalPool();
  await using leased = await leaseBrowser(
    new BrowserPool('default', { baseUrl: local.baseUrl, token: local.token }),
  );
  const titles: string[] = [leased.page.url()];
  await enqueueInputs('queue', titles, { connection: { host: '127.0.0.1' } });
  for await (const outcome of mapPooledBrowsers('default', titles, ({ page, input }) =>
    page.evaluate((text) => text, input),
  ))
    if (outcome.status === 'fulfilled') titles.push(outcome.value);
  const { value } = await puppeteer.withPooledBrowser('default', ({ page }) => page.url(), {
    protocol: 'bidi',
  });
  return [...titles, value];
}
