/**
 * `npm run bench -- expose-network`: what the option `exposeNetwork` costs. Pages of another host, to which it does not apply,
 * with and without the option; and a page with 200 requests to an exposed app on this machine, against the same page that the
 * browser requests by itself. The pool and the app are processes of their own. PAGES (default 60), ROUNDS (default 12).
 */
import { BrowserPool } from 'pooled-browser';
import * as playwright from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';
import { compare, printComparison, serveApp, servePool, setting, time } from './bench.js';

const PAGES = setting('PAGES', 60);
const ROUNDS = setting('ROUNDS', 12);
const WITHOUT = 'without the option';

interface AnyPage {
  goto(url: string): Promise<unknown>;
}

type Run = (fn: (page: AnyPage) => Promise<number>, exposeNetwork: string | undefined) => Promise<number>;

await using served = await servePool();
const { app, port, site } = await serveApp();
const pool = new BrowserPool('bench', served.service);
const LIBRARIES: Record<string, Run> = {
  Playwright: async (fn, exposeNetwork) =>
    (await playwright.withPooledBrowser(pool, ({ page }) => fn(page), { exposeNetwork, context: 'new' }))
      .value,
  Puppeteer: async (fn, exposeNetwork) =>
    (await puppeteer.withPooledBrowser(pool, ({ page }) => fn(page), { exposeNetwork, context: 'new' }))
      .value,
};

for (const [library, run] of Object.entries(LIBRARIES)) {
  const rate = async (page: AnyPage) => {
    const open = async () => {
      for (let index = 0; index < PAGES; index++) await page.goto(`${site}/plain/${index}`);
    };
    return (1000 * PAGES) / (await time(open));
  };
  const other = {
    [WITHOUT]: async () => ({ rate: await run(rate, undefined) }),
    'with it, for another host': async () => ({ rate: await run(rate, 'localhost:3000,*.test.internal') }),
  };
  const load = async (page: AnyPage) => {
    await page.goto(`${site}/plain`);
    return time(() => page.goto(`${site}/`));
  };
  const exposed = {
    [WITHOUT]: async () => ({ load: await run(load, undefined) }),
    'with it': async () => ({ load: await run(load, `127.0.0.1:${port}`) }),
  };
  const rows = [
    ...(await compare({
      subject: `${library}: ${PAGES} pages of 4 requests`,
      ways: other,
      units: { rate: 'pages/s' },
      peers: [WITHOUT],
      rounds: ROUNDS,
    })),
    ...(await compare({
      subject: `${library}: a page of 201 requests`,
      ways: exposed,
      units: { load: 'ms' },
      peers: [WITHOUT],
      rounds: ROUNDS,
    })),
  ];
  printComparison(rows, [WITHOUT]);
}
app.kill();
await pool.close();
await import('./interception.js');
