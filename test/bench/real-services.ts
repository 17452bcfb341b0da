/**
 * `npm run bench -- real-services`: jobs of INPUTS (default 200) on a real Selenium Grid and a real Browserless with two
 * browsers each, which are killed and started again in the middle. Fails if an input has not exactly one outcome, or if a browser
 * stays leased. Needs `npm ci --prefix test/real-services --ignore-scripts`, Java and chromedriver.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool } from '../../src/index.js';
import { browserless, webdriver } from '../../src/services.js';
import { TOKEN } from '../support/fake-service.js';
import { jobThroughRestart } from '../support/real-jobs.js';
import { RealBrowserless, SeleniumGrid } from '../support/real-services.js';
import { useWholeBrowser } from '../support/whole-browser.js';
import { printTable, setting } from './bench.js';

const INPUTS = setting('INPUTS', 200);
/** Milliseconds after which a browser counts as leased for good. */
const PATIENCE = 20_000;

useWholeBrowser();

const PROGRAMS = {
  'Selenium Grid': async () => {
    const server = await SeleniumGrid.start({ sessions: 2, queueTimeout: 10 });
    const service = webdriver({ url: server.url });
    return { server, service, token: undefined, leased: async () => (await server.sessions()).length };
  },
  Browserless: async () => {
    const server = await RealBrowserless.start({ concurrent: 2 });
    const service = browserless({ baseUrl: server.url, launch: { args: ['--no-sandbox'] } });
    return { server, service, token: TOKEN, leased: () => server.running() };
  },
};

const rows: (string | number)[][] = [];
let isWrong = false;
for (const [name, start] of Object.entries(PROGRAMS)) {
  const { service, token, leased, ...started } = await start();
  await using server = started.server;
  const pool = new BrowserPool<object>('bench', {
    service,
    token,
  });
  const report = await jobThroughRestart(pool, server, INPUTS);
  await pool.close();
  const gaveUpAt = performance.now() + PATIENCE;
  while ((await leased()) > 0 && performance.now() < gaveUpAt) await sleep(100);
  const left = await leased();
  const ofOne = (status: string) => report.outcomes.filter((all) => all.length === 1 && all[0] === status);
  const [fulfilled, rejected] = [ofOne('fulfilled').length, ofOne('rejected').length];
  isWrong ||= fulfilled + rejected !== INPUTS || left > 0;
  const { attempts, events, duration, longestPause } = report;
  rows.push([
    name,
    fulfilled,
    rejected,
    INPUTS - fulfilled - rejected,
    attempts,
    events['connected'] ?? 0,
    events['browser-lost'] ?? 0,
    events['acquiring'] ?? 0,
    `${(duration / 1000).toFixed(1)} s`,
    `${(longestPause / 1000).toFixed(1)} s`,
    left,
  ]);
  for (const error of new Set(report.errors)) console.log(`${name}: ${error}`);
}
printTable(
  [
    `${INPUTS} inputs`,
    'fulfilled',
    'rejected',
    'none, or several outcomes',
    'attempts',
    'leases',
    'lost',
    'acquire requests',
    'duration',
    'longest pause',
    'still leased',
  ],
  rows,
);
process.exit(isWrong ? 1 : 0);
