/**
 * `npm run bench -- real-services`: jobs of INPUTS (default 200) on a real Selenium Grid and a real Browserless with two
 * browsers each, alone and in both orders of a list, of which one is killed and started again in the middle. Fails if an input has not exactly one outcome, or if a browser
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

type Started = Awaited<ReturnType<(typeof PROGRAMS)[keyof typeof PROGRAMS]>>;

/** The programs in the order in which their pools are asked, and the one that is killed. */
const CASES = [
  { order: ['Selenium Grid'], killed: 'Selenium Grid' },
  { order: ['Browserless'], killed: 'Browserless' },
  { order: ['Selenium Grid', 'Browserless'], killed: 'Selenium Grid' },
  { order: ['Browserless', 'Selenium Grid'], killed: 'Browserless' },
  { order: ['Selenium Grid', 'Browserless'], killed: 'Browserless' },
  { order: ['Browserless', 'Selenium Grid'], killed: 'Selenium Grid' },
] as const;

const rows: (string | number)[][] = [];
let isWrong = false;
for (const { order, killed } of CASES) {
  const started = new Map<string, Started>();
  for (const name of order) started.set(name, await PROGRAMS[name]());
  const pools = [...started].map(
    ([name, { service, token }]) => new BrowserPool<object>(name, { service, token }),
  );
  const report = await jobThroughRestart(pools, started.get(killed)!.server, INPUTS);
  await Promise.all(pools.map((pool) => pool.close()));
  const left = await countLeft([...started.values()]);
  for (const { server } of started.values()) await server[Symbol.asyncDispose]();
  const ofOne = (status: string) => report.outcomes.filter((all) => all.length === 1 && all[0] === status);
  const [fulfilled, rejected] = [ofOne('fulfilled').length, ofOne('rejected').length];
  isWrong ||= fulfilled + rejected !== INPUTS || left > 0;
  const { attempts, events, leases, duration, longestPause } = report;
  const title = `${order.join(', ')}; ${killed} is killed`;
  rows.push([
    title,
    fulfilled,
    rejected,
    INPUTS - fulfilled - rejected,
    attempts,
    order.map((name) => leases[name] ?? 0).join(', '),
    events['browser-lost'] ?? 0,
    events['acquiring'] ?? 0,
    events['failover'] ?? 0,
    `${(duration / 1000).toFixed(1)} s`,
    `${(longestPause / 1000).toFixed(1)} s`,
    left,
  ]);
  for (const error of new Set(report.errors)) console.log(`${title}: ${error}`);
}
printTable(
  [
    `${INPUTS} inputs`,
    'fulfilled',
    'rejected',
    'none, or several outcomes',
    'attempts',
    'leases of each',
    'lost',
    'acquire requests',
    'to the next pool',
    'duration',
    'longest pause',
    'still leased',
  ],
  rows,
);
process.exit(isWrong ? 1 : 0);

/** Counts the browsers that stay leased. */
async function countLeft(all: readonly Started[]): Promise<number> {
  const gaveUpAt = performance.now() + PATIENCE;
  for (;;) {
    const counts = await Promise.all(all.map(({ leased }) => leased()));
    const left = counts.reduce((sum, count) => sum + count, 0);
    if (left === 0 || performance.now() > gaveUpAt) return left;
    await sleep(100);
  }
}
