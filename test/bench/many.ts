/**
 * `npm run bench:many`: CALLS (default 1,000) calls at once on a pool of 10: the order in which they are served, the
 * use of the pool, the cost of a waiting call, and the effect of an outage of OUTAGE seconds (default 10).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool, withPooledBrowser } from '../../src/index.js';
import { plainConnector } from '../support/plain-connector.js';
import { memoryInUse, percentile, printTable, setting, startProgram, time } from './bench.js';

const CALLS = setting('CALLS', 1000);
const OUTAGE = setting('OUTAGE', 10);
const SIZE = 10;
/** Time for which each call uses its browser, in ms. */
const WORK = 50;

interface Figures {
  requests: number;
  whileDown: number;
  order: number[];
  /** Sum of the times for which browsers were leased, in ms. */
  busy: number;
  /** Milliseconds from the end of the outage to the first grant. */
  firstAfter: number;
}

const rows = [...(await measureLoad()), ...(await measureOutage())];
printTable([`${CALLS} calls at once, ${SIZE} browsers`, 'figure'], rows);
process.exit();

async function measureLoad(): Promise<[string, string][]> {
  await using program = await startProgram('busy-service.mjs', String(SIZE));
  await using pool = new BrowserPool('bench', program.service);
  await call(pool, 0);
  const memoryBefore = memoryInUse().all;
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  const calls = callAll(pool);
  await sleep(500);
  const { waiting } = pool.stats();
  const memory = memoryInUse().all - memoryBefore;
  await calls;
  const elapsed = performance.now() - began;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { order, busy, requests } = (await program.ask('figures')) as Figures;
  const places = order.slice(1).map((number, place) => Math.abs(number - 1 - place));
  const mean = places.reduce((sum, value) => sum + value, 0) / places.length;
  return [
    [
      'difference from the order of the calls in places, mean and p99',
      `${mean.toFixed(1)}, ${percentile(places, 99)}`,
    ],
    ['share of time that browsers were leased', (busy / (elapsed * SIZE)).toFixed(2)],
    ['requests per call', (requests / CALLS).toFixed(2)],
    ['memory per waiting call', `${Math.round(memory / waiting / 1024)} KiB`],
    ['CPU per call', `${((user + system) / 1000 / CALLS).toFixed(2)} ms`],
  ];
}

async function measureOutage(): Promise<[string, string][]> {
  await using program = await startProgram('busy-service.mjs', String(CALLS));
  await using pool = new BrowserPool('bench', program.service);
  await call(pool, 0);
  await program.ask('down');
  const calls = callAll(pool);
  await sleep(OUTAGE * 1000);
  await program.ask('up');
  const recovered = await time(() => calls);
  const { whileDown, firstAfter } = (await program.ask('figures')) as Figures;
  const times = `${Math.round(firstAfter)} ms, ${Math.round(recovered)} ms`;
  return [
    [`requests per call in an outage of ${OUTAGE} s`, (whileDown / CALLS).toFixed(2)],
    ['from the end of the outage to the first lease, and to the last', times],
  ];
}

async function callAll(pool: BrowserPool): Promise<void> {
  await Promise.all(Array.from({ length: CALLS }, (_, index) => call(pool, index + 1)));
}

/** Without an automation library: only acquire and release are measured. */
async function call(pool: BrowserPool, number: number): Promise<void> {
  await withPooledBrowser(pool, () => sleep(WORK), {
    connector: plainConnector,
    tags: { call: String(number) },
    replays: 'off',
    acquireTimeout: 10 * 60_000,
  });
}
