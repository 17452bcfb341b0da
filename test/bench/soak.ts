/**
 * `npm run soak`: LEASES (default 2,000) leases on a local pool of SIZE (default 3) browsers, through all three
 * drivers, with faults. Prints the resources before and after, and the growth of memory. Fails if anything was left.
 * SEED repeats a run.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { DRIVERS, type AnyLease } from '../support/drivers.js';
import { processesOf } from '../support/processes.js';
import { Random } from '../support/random.js';
import { memoryInUse, printTable, setting, slope } from './bench.js';

const LEASES = setting('LEASES', 2000);
const SIZE = setting('SIZE', 3);
const SAMPLES = 20;
const WARM_UP = 0.2;
const random = new Random(setting('SEED', 1));

// The browsers of this run are counted by this folder.
const folder = mkdtempSync(join(tmpdir(), 'pb-soak-'));
process.env['TMPDIR'] = folder;

const FAULTS = {
  none: async ({ page }: AnyLease) => void (await page.goto('data:text/html,<title>soak</title>')),
  throws: () => {
    throw new Error('fault: throws');
  },
  'times out': () => new Promise<void>(() => {}),
  aborts: () => new Promise<void>(() => {}),
  'closes the browser': ({ browser }: AnyLease) => browser.close(),
  'closes its page': ({ page }: AnyLease) => page.close(),
  'leaves pages open': async (lease: AnyLease) => void (await lease.browser.newPage()),
  'new context': async ({ page }: AnyLease) => void (await page.title()),
  'browser killed': async ({ session, page }: AnyLease) => {
    process.kill(pids.get(session.session_id)!, 'SIGKILL');
    await page.title().catch(() => {});
    await sleep(50);
  },
};
type Fault = keyof typeof FAULTS;
/** A killed or closed browser costs a start of Chromium, so these faults are rare. */
const FREQUENCIES: Partial<Record<Fault, number>> = {
  none: 24,
  throws: 2,
  'leaves pages open': 2,
  'closes its page': 2,
  'new context': 2,
};
const DRAW = (Object.keys(FAULTS) as Fault[]).flatMap((fault) =>
  Array<Fault>(FREQUENCIES[fault] ?? 1).fill(fault),
);

const counts = { begun: 0, granted: 0, released: 0, notReleased: 0, ok: 0, failed: 0 };
const faults = new Map<Fault, number>();
const heap: number[] = [];
const first = take();
/** Process ids of the browsers, by session id. */
const pids = new Map<string, number>();
const local = await startLocalPool({
  pools: [{ name: 'soak', size: SIZE }],
  onLog: (event) => {
    if (event.type === 'browser-started') pids.set(event.sessionId, event.pid);
  },
});
const pool = new BrowserPool('soak', { baseUrl: local.baseUrl, token: local.token });
await leaseUpTo(LEASES * WARM_UP);
const warm = take();
for (let step = 0; step < SAMPLES; step++) {
  await leaseUpTo(LEASES * (WARM_UP + ((1 - WARM_UP) * (step + 1)) / SAMPLES));
  heap.push(memoryInUse().heap / 2 ** 20);
  console.log(`${counts.granted} leases, heap ${heap.at(-1)!.toFixed(2)} MB`);
}
const busy = { ...take(), leased: local.stats().leased };
await pool.close();
await local.close();
await sleep(1500);
const last = take();

report();

async function leaseUpTo(total: number): Promise<void> {
  const work = async () => {
    while (counts.begun < Math.round(total)) {
      counts.begun++;
      await leaseOnce();
    }
  };
  await Promise.all(Array.from({ length: SIZE }, work));
}

async function leaseOnce(): Promise<void> {
  const driver = random.pick(DRIVERS);
  const fault = random.pick(DRAW);
  faults.set(fault, (faults.get(fault) ?? 0) + 1);
  const controller = new AbortController();
  const options = {
    ...(fault === 'times out' && { timeout: 200 }),
    ...(fault === 'new context' && { context: 'new' as const }),
    replays: random.pick(['off', 'list'] as const),
    acquireTimeout: 120_000,
    signal: controller.signal,
    onEvent: ({ type }: { type: string }) => {
      if (type === 'acquired') counts.granted++;
      if (type === 'released') counts.released++;
      if (type === 'release-failed') counts.notReleased++;
      if (fault === 'aborts' && type === 'callback-started') setTimeout(() => controller.abort(), 100);
    },
  };
  await driver.run(pool, FAULTS[fault], options as never).then(
    () => counts.ok++,
    (error: unknown) => {
      counts.failed++;
      if (process.env['VERBOSE'] || fault === 'none') console.log(driver.name, fault, String(error));
    },
  );
}

function take() {
  const heapInUse = memoryInUse().heap;
  const handles = process.getActiveResourcesInfo();
  return {
    'heap, MB': Number((heapInUse / 2 ** 20).toFixed(2)),
    handles: handles.filter((name) => !/Timeout|Immediate|TTY|Pipe/.test(name)).length,
    timers: handles.filter((name) => name === 'Timeout').length,
    sockets: handles.filter((name) => name.startsWith('TCP')).length,
    'file descriptors': readdirSync('/proc/self/fd').length,
    'Chromium processes': processesOf(folder).length,
    'profile folders': readdirSync(folder).filter((name) => name.startsWith('pooled-browser-')).length,
    zombies: zombies(),
  };
}

function zombies(): number {
  const lines = execFileSync('ps', ['-o', 'stat=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  return lines.split('\n').filter((state) => state.startsWith('Z')).length;
}

function report(): void {
  const names = Object.keys(first) as (keyof typeof first)[];
  printTable(
    ['', 'before', 'warm', 'after all leases', 'after close()'],
    names.map((name) => [name, first[name], warm[name], busy[name], last[name]]),
  );
  const perLease = (slope(heap) * 2 ** 20) / ((LEASES * (1 - WARM_UP)) / SAMPLES);
  console.log(`faults: ${[...faults].map(([fault, count]) => `${fault} ${count}`).join(', ')}`);
  console.log(
    `${counts.granted} granted, ${counts.released} released, ${counts.notReleased} reported as not released`,
  );
  console.log(
    `${counts.ok} runs succeeded, ${counts.failed} failed; heap slope ${perLease.toFixed(0)} bytes per lease`,
  );
  const leaks = [
    counts.granted !== counts.released && `${counts.granted - counts.released} leases`,
    busy.leased > 0 && `${busy.leased} leased at the pool`,
    ...(['handles', 'sockets', 'Chromium processes', 'profile folders', 'zombies'] as const).map(
      (name) => last[name] > first[name] && `${last[name] - first[name]} ${name}`,
    ),
  ].filter(Boolean);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  console.log(leaks.length > 0 ? `LEAKED: ${leaks.join(', ')}` : 'nothing leaked');
  process.exitCode = leaks.length > 0 ? 1 : 0;
}
