/**
 * `npm run bench:many`: 1,000 calls at once on a pool of 10, at a simulated service over real sockets: in which order they
 * are served, how well the pool is used, what a waiting call costs, and what an outage of 10 s does.
 * CALLS (default 1,000) and OUTAGE (seconds, default 10) set the size.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool, withPooledBrowser } from '../../src/index.js';
import { plainConnector } from '../support/plain-connector.js';
import { startProgram } from './child.js';
import { collectGarbage } from './collect-garbage.js';
import { percentile, printTable } from './figures.js';

const CALLS = Number(process.env['CALLS'] ?? 1000);
const OUTAGE = Number(process.env['OUTAGE'] ?? 10);
const SIZE = 10;
/** Milliseconds that each call keeps its browser. */
const WORK = 50;

interface ServiceFigures {
  requests: number;
  whileDown: number;
  order: number[];
  busy: number;
  firstAfter: number;
  lastRelease: number;
}

const rows = [...(await measureLoad()), ...(await measureOutage())];
printTable([`${CALLS} calls at once, ${SIZE} browsers`, 'figure'], rows);
process.exit();

async function measureLoad(): Promise<[string, string][]> {
  const service = await startProgram('busy-service.mjs', [String(SIZE)]);
  const pool = new BrowserPool('bench', { ...service.facts, token: 'bench-token-0123456789' });
  await call(pool, 0);
  const memoryBefore = memoryInUse();
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  const calls = Array.from({ length: CALLS }, (_, index) => call(pool, index + 1));
  await sleep(500);
  const { waiting } = pool.stats();
  const memory = memoryInUse() - memoryBefore;
  await Promise.all(calls);
  const elapsed = performance.now() - began;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { order, busy, requests } = (await service.ask('figures')) as ServiceFigures;
  await pool.close();
  await service.stop();
  const places = order.slice(1).map((number, place) => Math.abs(number - 1 - place));
  return [
    [
      'places off the order of the calls, mean and p99',
      `${mean(places).toFixed(1)}, ${percentile(places, 99)}`,
    ],
    ['share of time that browsers were leased', (busy / (elapsed * SIZE)).toFixed(2)],
    ['requests a call', (requests / CALLS).toFixed(2)],
    ['memory a waiting call', `${Math.round(memory / waiting / 1024)} KiB`],
    ['CPU a call', `${((user + system) / 1000 / CALLS).toFixed(2)} ms`],
  ];
}

async function measureOutage(): Promise<[string, string][]> {
  const service = await startProgram('busy-service.mjs', [String(CALLS)]);
  const pool = new BrowserPool('bench', { ...service.facts, token: 'bench-token-0123456789' });
  await call(pool, 0);
  await service.ask('down');
  const calls = Array.from({ length: CALLS }, (_, index) => call(pool, index + 1));
  await sleep(OUTAGE * 1000);
  await service.ask('up');
  const began = performance.now();
  await Promise.all(calls);
  const recovered = performance.now() - began;
  const { whileDown, firstAfter } = (await service.ask('figures')) as ServiceFigures;
  await pool.close();
  await service.stop();
  return [
    [`requests a call in an outage of ${OUTAGE} s`, (whileDown / CALLS).toFixed(2)],
    [
      'from its end to the first lease, and to the last',
      `${Math.round(firstAfter)} ms, ${Math.round(recovered)} ms`,
    ],
  ];
}

/** Bytes, once what nobody holds any more is gone. */
function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function call(pool: BrowserPool, number: number): Promise<void> {
  await withPooledBrowser(pool, () => sleep(WORK), {
    // What is measured is the way to a lease and back: no driver.
    connector: plainConnector,
    tags: { call: String(number) },
    replays: 'off',
    acquireTimeout: 10 * 60_000,
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
