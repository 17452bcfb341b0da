/**
 * `npm run bench:overhead`: a whole lease through `withPooledBrowser`, against raw HTTP with the automation library
 * alone, against the same requests by hand, and against the public service's own SDK. ROUNDS (default 120).
 */
import { Session as Inspector } from 'node:inspector/promises';
import { BrowserPool } from 'pooled-browser';
import { compare, printComparison, servePool, setting, time, type Way } from './bench.js';
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
const WARM_UP = Math.min(30, ROUNDS);
/** Each connect of Playwright leaves a JavaScript world in the page, which slows the next connect down. */
const ROUNDS_A_BROWSER = 10;
const SAMPLED_LEASES = 5;
const PEERS = ['by hand', 'by hand, the same steps'];

await using served = await servePool();
const pool = new BrowserPool('bench', served.service);
const rows: string[][] = [];
// Playwright is last, because it leaves the most memory in use.
for (const driver of DRIVERS.toReversed()) rows.push(...(await measure(driver)));
printComparison(rows, PEERS);
await served[Symbol.asyncDispose]();
process.exit();

async function measure(driver: Driver): Promise<string[][]> {
  const leases: [string, LeaseOnce][] = [
    ['by hand', byHand(served.service, driver)],
    ['by hand, the same steps', byHandWithAllSteps(served.service, driver)],
    ['@onkernel/sdk', withSdk(served.service, driver)],
    ['pooled-browser', withOurs(pool, driver)],
  ];
  const each = <Figure extends string>(measureOne: (lease: LeaseOnce) => ReturnType<Way<Figure>>) =>
    Object.fromEntries(leases.map(([name, lease]) => [name, () => measureOne(lease)]));
  const beforeRound = async (round: number) => {
    if (round % ROUNDS_A_BROWSER === 0) await renewBrowser(leases.map(([, lease]) => lease));
  };
  const common = { subject: driver, peers: PEERS };
  return [
    ...(await compare({
      ...common,
      ways: each(timeOnce),
      units: { wall: 'ms', CPU: 'ms' },
      rounds: ROUNDS,
      warmUp: WARM_UP,
      beforeRound,
    })),
    ...(await compare({
      ...common,
      ways: each(allocate),
      units: { allocated: 'KiB' },
      rounds: 1,
      warmUp: 0,
    })),
  ];
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

/** Measures the memory that one lease allocates, including memory that was collected meanwhile. */
async function allocate(lease: LeaseOnce): Promise<{ allocated: number }> {
  const inspector = new Inspector();
  inspector.connect();
  await inspector.post('HeapProfiler.startSampling', {
    samplingInterval: 4096,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  for (let round = 0; round < SAMPLED_LEASES; round++) await lease((page) => page.evaluate('1'));
  const { profile } = await inspector.post('HeapProfiler.stopSampling');
  inspector.disconnect();
  return { allocated: sizeOf(profile.head) / SAMPLED_LEASES / 1024 };
}

interface Node {
  selfSize: number;
  children: Node[];
}

function sizeOf({ selfSize, children }: Node): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}
