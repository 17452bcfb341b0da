/**
 * `npm run bench -- overhead`: a whole lease through `withPooledBrowser`, against raw HTTP with the automation library
 * alone, against the same requests by hand, and against the public service's own SDK. ROUNDS (default 120; 0: none). Then a connection
 * through `pooled-browser proxy`, against one without it. PROXY_ROUNDS (default 7).
 */
import { BrowserPool } from 'pooled-browser';
import { compare, printComparison, servePool, setting, time } from './bench.js';
import { BARE, compareProxy, DIRECT, memoryOfIdleClient } from './proxy-cost.js';
import {
  byHand,
  byHandWithAllSteps,
  DRIVERS,
  withOurs,
  withSdk,
  type Driver,
  type LeaseOnce,
} from './ways.js';

const ROUNDS = setting('ROUNDS', 120);
const PROXY_ROUNDS = setting('PROXY_ROUNDS', 7);
const WARM_UP = Math.min(30, ROUNDS);
/** Each connect of Playwright leaves a JavaScript world in the page, which slows the next connect down. */
const ROUNDS_A_BROWSER = 10;
const PEERS = ['by hand', 'by hand, the same steps'];

await using served = await servePool();
const pool = new BrowserPool('bench', served.service);
const rows: string[][] = [];
// Playwright is last, because it leaves the most memory in use.
for (const driver of ROUNDS > 0 ? DRIVERS.toReversed() : []) rows.push(...(await measure(driver)));
if (rows.length > 0) printComparison(rows, PEERS);
printComparison(await compareProxy(served.service, PROXY_ROUNDS), [DIRECT, BARE]);
console.log(`Memory of an idle client in the proxy: ${(await memoryOfIdleClient()).toFixed(0)} kB\n`);
await served[Symbol.asyncDispose]();
process.exit();

async function measure(driver: Driver): Promise<string[][]> {
  const leases: [string, LeaseOnce][] = [
    ['by hand', byHand(served.service, driver)],
    ['by hand, the same steps', byHandWithAllSteps(served.service, driver)],
    ['@onkernel/sdk', withSdk(served.service, driver)],
    ['pooled-browser, browser as it is', withOurs(pool, driver, { release: 'reuse' })],
    ['pooled-browser, browser cleaned', withOurs(pool, driver)],
  ];
  return compare({
    subject: driver,
    ways: Object.fromEntries(leases.map(([name, lease]) => [name, () => timeOnce(lease)])),
    units: { wall: 'ms', CPU: 'ms' },
    peers: PEERS,
    rounds: ROUNDS,
    warmUp: WARM_UP,
    async beforeRound(round) {
      if (round % ROUNDS_A_BROWSER === 0) await renewBrowser(leases.map(([, lease]) => lease));
    },
  });
}

/** Replaces the browser, and runs every way once on the new browser. Neither is measured. */
async function renewBrowser(leases: LeaseOnce[]): Promise<void> {
  const { session_id } = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
  await pool.release(session_id, { reuse: false });
  for (const lease of leases) await lease((page) => page.evaluate('1'));
}

async function timeOnce(lease: LeaseOnce): Promise<Record<'wall' | 'CPU', number>> {
  const before = process.cpuUsage();
  const wall = await time(() => lease((page) => page.evaluate('1')));
  const { user, system } = process.cpuUsage(before);
  return { wall, CPU: (user + system) / 1000 };
}
