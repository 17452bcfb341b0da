/**
 * `npm run bench -- allowed-hosts`: what the option `allowedHosts` costs: leases in which 20 pages of an allowed host send 50 requests
 * each, with and without the option, alternating. The pool and the site are processes of their own. PAGES (default 20), ROUNDS
 * (default 7).
 */
import { BrowserPool } from 'pooled-browser';
import * as playwright from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';
import { compare, printComparison, serveApp, servePool, setting, time } from './bench.js';

const PAGES = setting('PAGES', 20);
const ROUNDS = setting('ROUNDS', 7);
const WITHOUT = 'without the option';

/** Sends 50 requests, one after the other. */
const FETCHES = `(async () => {
  for (let index = 0; index < 50; index++) await (await fetch('/data/' + index)).text();
})()`;

interface AnyPage {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
  close(): Promise<void>;
}

await using served = await servePool();
const { app, port, site } = await serveApp();
const pool = new BrowserPool('bench', served.service);

async function load(newPage: () => Promise<AnyPage>): Promise<void> {
  for (let index = 0; index < PAGES; index++) {
    const page = await newPage();
    await page.goto(`${site}/plain`);
    await page.evaluate(FETCHES);
    await page.close();
  }
}

type Run = (allowedHosts: string | undefined) => Promise<unknown>;
const LIBRARIES: Record<string, Run> = {
  Playwright: (allowedHosts) =>
    playwright.withPooledBrowser(pool, ({ context }) => load(() => context.newPage()), { allowedHosts }),
  Puppeteer: (allowedHosts) =>
    puppeteer.withPooledBrowser(pool, ({ browser }) => load(() => browser.newPage()), { allowedHosts }),
};

for (const [library, run] of Object.entries(LIBRARIES)) {
  const ways = {
    [WITHOUT]: async () => ({ lease: await time(() => run(undefined)) }),
    'with it': async () => ({ lease: await time(() => run(`127.0.0.1:${port},*.example.com`)) }),
  };
  const subject = `${library}: a lease with ${PAGES} pages of 50 requests`;
  const rows = await compare({ subject, ways, units: { lease: 'ms' }, peers: [WITHOUT], rounds: ROUNDS });
  printComparison(rows, [WITHOUT]);
}
app.kill();
await pool.close();
