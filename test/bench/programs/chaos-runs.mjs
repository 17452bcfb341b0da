// Leases browsers a few times, two at once, and prints the reported results. Used by ../chaos.ts.
import Kernel from '@onkernel/sdk';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { BrowserPool } from '../../../dist/index.js';
import * as playwright from '../../../dist/playwright.js';
import * as puppeteer from '../../../dist/puppeteer.js';

const [, , contender, first, count, seed] = process.argv;
const { BROWSER_POOL_BASE_URL: origin, BROWSER_POOL_ACCESS_TOKEN: token } = process.env;
const WAYS = [
  { library: playwright, protocol: 'cdp' },
  { library: puppeteer, protocol: 'cdp' },
  { library: puppeteer, protocol: 'bidi' },
];

const REPORTED = ['acquired', 'released', 'outcome-unknown', 'release-failed'];
/** The reader may have ended: its time was over. */
const say = (run, what) => {
  try {
    writeSync(1, `${JSON.stringify({ run, what })}\n`);
  } catch (error) {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  }
};

/** Works for up to a second. One of eight runs blocks its process for two. */
async function work(page, run) {
  if ((run + Number(seed)) % 8 === 0) for (const end = Date.now() + 2000; Date.now() < end;);
  for (let step = 0; step < run % 5; step++) {
    await page.evaluate('document.title');
    await sleep(200);
  }
}

const contenders = {
  async 'pooled-browser'(run) {
    const { library, protocol } = WAYS[run % WAYS.length];
    const pool = new BrowserPool('test', { baseUrl: `${origin}/${run}`, token });
    await library.withPooledBrowser(pool, ({ page }) => work(page, run), {
      ...(protocol === 'bidi' && { protocol }),
      acquireTimeout: 20_000,
      pollTimeout: 5000,
      connectTimeout: 8000,
      releaseTimeout: 4000,
      timeout: 10_000,
      replays: 'off',
      releaseOnCrash: true,
      retry: { minTimeout: 50, maxTimeout: 500 },
      onEvent: ({ type }) => {
        if (REPORTED.includes(type)) say(run, type);
      },
    });
  },
  async '@onkernel/sdk'(run) {
    const client = new Kernel({
      baseURL: `${origin}/${run}`,
      apiKey: token,
      timeout: 10_000,
      logLevel: 'off',
    });
    const session = await client.browserPools.acquire('test', { acquire_timeout_seconds: 5 });
    say(run, 'acquired');
    try {
      const browser = await chromium.connectOverCDP(session.cdp_ws_url, { timeout: 8000 });
      try {
        const [context] = browser.contexts();
        const page = context.pages()[0] ?? (await context.newPage());
        await Promise.race([work(page, run), sleep(10_000, undefined, { ref: false })]);
      } finally {
        await browser.close();
      }
    } finally {
      await client.browserPools.release('test', { session_id: session.session_id });
      say(run, 'released');
    }
  },
};

process.on('unhandledRejection', () => {});
const runs = Array.from({ length: Number(count) }, (_, index) => Number(first) + index);
await Promise.all(
  [0, 1].map(async (lane) => {
    for (const run of runs.filter((_, index) => index % 2 === lane)) {
      await contenders[contender](run).then(
        () => say(run, 'ok'),
        (error) => say(run, `error ${error?.constructor?.name}`),
      );
    }
  }),
);
process.exit();
