/**
 * `npm run bench:overhead`: a whole lease through `withPooledBrowser`, against the least that works by hand (raw HTTP,
 * bare driver), against the same steps by hand, and against the public service's own SDK with the bare driver, on one
 * local pool in a process of its own. ROUNDS (default 120) sets how often.
 */
import { Session as Inspector } from 'node:inspector/promises';
import { BrowserPool } from 'pooled-browser';
import {
  byHand,
  byHandWithAllSteps,
  PROTOCOLS,
  withOurs,
  withSdk,
  type LeaseOnce,
  type ProtocolName,
} from './by-hand.js';
import { median, percentile, printTable } from './figures.js';
import { servePool } from './served-pool.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 120);
const WARM_UP = 30;
/** Playwright leaves a JavaScript world in the page with every connect, and each makes the next connect longer. */
const ROUNDS_A_BROWSER = 10;

interface Figures {
  wall: number[];
  cpu: number[];
}

await using served = await servePool();
const pool = new BrowserPool('bench', served.service);
const rows: string[][] = [];
// Playwright last: it leaves most in this process, and all that come after it would pay for that.
for (const protocol of PROTOCOLS.toReversed()) rows.push(...(await measure(protocol)));
printTable(
  ['driver', 'way', 'p50', 'p95', 'CPU a lease', 'allocated', 'above by hand', 'above the same steps'],
  rows,
);
await served[Symbol.asyncDispose]();
process.exit();

async function measure(protocol: ProtocolName): Promise<string[][]> {
  const ways: Record<string, LeaseOnce> = {
    'by hand': byHand(served.service, protocol),
    'by hand, the same steps': byHandWithAllSteps(served.service, protocol),
    '@onkernel/sdk': withSdk(served.service, protocol),
    'pooled-browser': withOurs(served.service, protocol),
  };
  const names = Object.keys(ways);
  const figures = Object.fromEntries(names.map((name): [string, Figures] => [name, { wall: [], cpu: [] }]));
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    if (round % ROUNDS_A_BROWSER === 0) await renewBrowser(Object.values(ways));
    // Each is first as often as the others: a busy moment meets all.
    const turns = names.map((_, index) => names[(index + round + WARM_UP) % names.length]!);
    for (const name of turns) {
      const { wall, cpu } = await timeOnce(ways[name]!);
      if (round < 0) continue;
      figures[name]!.wall.push(wall);
      figures[name]!.cpu.push(cpu);
    }
  }
  const table: string[][] = [];
  for (const name of names) {
    const { wall, cpu } = figures[name]!;
    const allocated = await allocatedBy(ways[name]!);
    const above = (reference: string) => {
      const difference = (what: keyof Figures) =>
        `${(median(figures[name]![what]) - median(figures[reference]![what])).toFixed(1)} ms`;
      return name === reference ? '' : `${difference('wall')}, CPU ${difference('cpu')}`;
    };
    table.push([
      protocol,
      name,
      `${median(wall).toFixed(1)} ms`,
      `${percentile(wall, 95).toFixed(1)} ms`,
      `${median(cpu).toFixed(1)} ms`,
      `${Math.round(allocated / 1024)} KiB`,
      above('by hand'),
      above('by hand, the same steps'),
    ]);
  }
  return table;
}

/** Gives every way a first lease of a new browser. Neither is part of the figures. */
async function renewBrowser(ways: LeaseOnce[]): Promise<void> {
  const { session_id } = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
  await pool.release(session_id, { reuse: false });
  for (const lease of ways) await lease((page) => page.evaluate('1'));
}

async function timeOnce(lease: LeaseOnce): Promise<{ wall: number; cpu: number }> {
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  await lease((page) => page.evaluate('1'));
  const wall = performance.now() - began;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { wall, cpu: (user + system) / 1000 };
}

/** Bytes that one lease allocates in this process, what was collected meanwhile included. */
async function allocatedBy(lease: LeaseOnce): Promise<number> {
  const inspector = new Inspector();
  inspector.connect();
  await inspector.post('HeapProfiler.startSampling', {
    samplingInterval: 4096,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  for (let round = 0; round < 5; round++) await lease((page) => page.evaluate('1'));
  const { profile } = await inspector.post('HeapProfiler.stopSampling');
  inspector.disconnect();
  return sizeOf(profile.head) / 5;
}

interface Node {
  selfSize: number;
  children: Node[];
}

function sizeOf({ selfSize, children }: Node): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}
