import type { Page as PlaywrightPage } from 'playwright-core';
import type { Page as PuppeteerPage } from 'puppeteer-core';
import type { RunEvent } from '../../lease/events.js';
import { withPooledBrowser as withPlaywright } from '../../lease/playwright.js';
import { withPooledBrowser as withPuppeteer } from '../../lease/puppeteer.js';
import type { Run } from '../../lease/run.js';
import type { BrowserPool } from '../../service/browser-pool.js';

/** What a job works with. */
export interface JobRequest {
  pool: BrowserPool;
  shopUrl: string;
  /** Called by the job's own code, between the steps of the library. */
  say: (what: string) => void;
  options: {
    name: string;
    acquireTimeout: number;
    pollTimeout: number;
    timeout: number;
    signal: AbortSignal;
    onEvent: (event: RunEvent) => void;
  };
}

/** One way to drive a browser. Its value is the receipt that it read. */
export interface Job {
  library: string;
  protocol: 'cdp' | 'bidi';
  format: 'cyan' | 'magenta' | 'yellow';
  run: (request: JobRequest) => Promise<Run<string>>;
}

export const jobs: readonly Job[] = [
  {
    library: 'playwright',
    protocol: 'cdp',
    format: 'cyan',
    run: ({ pool, shopUrl, say, options }) =>
      withPlaywright(pool, ({ page }) => orderWithPlaywright(page, shopUrl, say), options),
  },
  {
    library: 'puppeteer',
    protocol: 'cdp',
    format: 'magenta',
    run: ({ pool, shopUrl, say, options }) =>
      withPuppeteer(pool, ({ page }) => orderWithPuppeteer(page, shopUrl, say), options),
  },
  {
    library: 'puppeteer',
    protocol: 'bidi',
    format: 'yellow',
    run: ({ pool, shopUrl, say, options }) => {
      const bidi = { ...options, protocol: 'bidi' } as const;
      return withPuppeteer(pool, ({ page }) => orderWithPuppeteer(page, shopUrl, say), bidi);
    },
  },
];

type Say = JobRequest['say'];

async function orderWithPlaywright(page: PlaywrightPage, shopUrl: string, say: Say): Promise<string> {
  await page.goto(shopUrl);
  say(`opened "${await page.title()}", and orders a teapot`);
  await page.getByRole('link', { name: 'Teapot' }).click();
  await page.getByLabel('Your name').fill('Ada');
  await page.getByRole('button', { name: 'Order' }).click();
  return page.locator('#receipt').innerText();
}

async function orderWithPuppeteer(page: PuppeteerPage, shopUrl: string, say: Say): Promise<string> {
  await page.goto(shopUrl);
  say(`opened "${await page.title()}", and orders a lamp`);
  await page.locator('a[href="/lamp"]').click();
  await page.locator('#name').fill('Grace');
  await page.locator('button').click();
  return page
    .locator('#receipt')
    .map((receipt) => receipt.textContent ?? '')
    .wait();
}
