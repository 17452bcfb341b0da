/**
 * `npm run chaos`: leases real browsers of a local pool behind a server that causes faults, from processes that end normally, by
 * SIGTERM or by SIGKILL, and records at the server how each lease ended. RUNS (300) and SEED (1) set their number and
 * their random choices.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLocalPool, type LocalPoolEvent } from '../../src/local.js';
import { Random } from '../support/random.js';
import { printTable, setting } from './bench.js';
import { ChaosServer, type FaultRates } from './chaos-server.js';
import { Ledger } from './ledger.js';

const RUNS = setting('RUNS', 300);
const SEED = setting('SEED', 1);
const RUNS_PER_PROCESS = 4;
/** More processes than browsers, so that a released browser is leased to another process immediately. */
const PROCESSES = 3;
const BROWSERS = 3;
const PROGRAM = fileURLToPath(new URL('programs/chaos-runs.mjs', import.meta.url));

const rates: FaultRates = {
  request: { status: 0.04, delay: 0.06, resetBefore: 0.03, resetAfter: 0.06, truncate: 0.03, noAnswer: 0.04 },
  socket: { refuseUpgrade: 0.03, noUpgrade: 0.02, resetSocket: 0.05, muteSocket: 0.03 },
  lease: { killBrowser: 0.03, endLease: 0.02 },
};

const rows: (readonly [string, Record<string, number>])[] = [];
for (const contender of ['@onkernel/sdk', 'pooled-browser']) rows.push([contender, await count(contender)]);
const figures = Object.keys(rows[0]![1]);
printTable(
  [`${RUNS} runs, seed ${SEED}`, ...rows.map(([name]) => name)],
  figures.map((figure) => [figure, ...rows.map(([, counts]) => counts[figure]!)]),
);
const ours = rows[1]![1];
// These numbers must be 0.
process.exit(ours['lost without a report'] === 0 && ours['released while held by another'] === 0 ? 0 : 1);

async function count(contender: string): Promise<Record<string, number>> {
  const random = new Random(SEED);
  const ledger = new Ledger();
  // A lost lease expires soon, so that the other clients do not wait for long.
  const pools = [{ name: 'test', size: BROWSERS, timeoutSeconds: 4 }];
  const processes = new Map<string, number>();
  const onLog = (event: LocalPoolEvent) => {
    if (event.type === 'browser-started') processes.set(event.sessionId, event.pid);
    else if (event.type === 'browser-destroyed') processes.delete(event.sessionId);
    ledger.note(event);
  };
  await using local = await startLocalPool({ pools, onLog });
  const options = { seed: SEED, rates, processOf: (sessionId: string) => processes.get(sessionId) };
  await using chaos = await new ChaosServer(local, options).listen();
  await using front = await ledger.front(chaos);
  const jobs = Array.from({ length: Math.ceil(RUNS / RUNS_PER_PROCESS) }, (_, index) => ({
    first: index * RUNS_PER_PROCESS + 1,
    signal: random.pick([undefined, 'SIGTERM', 'SIGKILL'] as const),
    after: random.between(500, 6000),
  })).values();
  const env = {
    ...process.env,
    BROWSER_POOL_BASE_URL: front.baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: local.token,
  };
  await Promise.all(
    Array.from({ length: PROCESSES }, async () => {
      for (const { first, signal, after } of jobs) {
        const args = [PROGRAM, contender, first, RUNS_PER_PROCESS, SEED].map(String);
        const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
        createInterface({ input: child.stdout }).on('line', (line) => ledger.hear(line));
        const timer = setTimeout(() => {
          if (!signal) return;
          ledger.end(first, RUNS_PER_PROCESS);
          child.kill(signal);
        }, after);
        await once(child, 'close');
        clearTimeout(timer);
        process.stderr.write('.');
      }
    }),
  );
  // Time for helper processes, late responses and unused leases.
  await sleep(15_000);
  process.stderr.write('\n');
  return ledger.counts();
}
