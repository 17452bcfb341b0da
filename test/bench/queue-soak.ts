/**
 * `npm run soak:queue`: INPUTS (default 1,000) inputs through a queue with real Chromium: WORKERS (default 3) processes of
 * `pooled-browser work` on a pool of SIZE (default 4) browsers. One worker is killed (SIGKILL) and replaced every
 * KILL_EVERY (default 10) seconds, and Redis restarts once. Fails unless every input has exactly one result and no browser
 * is left.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { collectOutcomes, enqueueInputs } from '../../src/bullmq.js';
import { startLocalPool } from '../../src/local.js';
import { TestRedis } from '../support/redis-server.js';
import { printTable, setting } from './bench.js';

const INPUTS = setting('INPUTS', 1000);
const WORKERS = setting('WORKERS', 3);
const SIZE = setting('SIZE', 4);
const KILL_EVERY = setting('KILL_EVERY', 10);

const folder = mkdtempSync(join(tmpdir(), 'pb-soak-queue-'));
const script = join(folder, 'title.mjs');
writeFileSync(
  script,
  'export default async ({ input, page }) => { await page.goto(input); return page.title(); };\n',
);

const counts = { visits: 0, killed: 0, restarts: 0, fulfilled: 0, rejected: 0, twice: 0 };
const site = createServer(({ url }, response) => {
  if (url !== '/favicon.ico') counts.visits++;
  response.setHeader('content-type', 'text/html').end(`<title>${url!.slice(1)}</title>`);
});
await once(site.listen(0, '127.0.0.1'), 'listening');
const { port } = site.address() as AddressInfo;
const local = await startLocalPool({ pools: [{ name: 'soak', size: SIZE }] });
await using redis = await TestRedis.start();
const connection = { connection: redis.url };
const urls = Array.from({ length: INPUTS }, (_, index) => `http://127.0.0.1:${port}/${index}`);
await enqueueInputs('soak', urls, { ...connection, attempts: 3 });
const workers = Array.from({ length: WORKERS }, startWorker);
const began = performance.now();
const killing = setInterval(killOne, KILL_EVERY * 1000);
process.once('SIGINT', () => void stop().finally(() => process.exit(130)));

const seen = new Uint8Array(INPUTS);
const wrong: unknown[] = [];
for await (const outcome of collectOutcomes('soak', connection)) {
  counts[outcome.status]++;
  if (++seen[outcome.index]! > 1) counts.twice++;
  const isRight = outcome.status === 'fulfilled' && outcome.value === String(outcome.index);
  if (!isRight) wrong.push(outcome);
  if (counts.fulfilled + counts.rejected === Math.floor(INPUTS / 2)) await restartRedis();
}
const seconds = ((performance.now() - began) / 1000).toFixed(0);
await endWorkers();
// The guards of the killed workers release their browsers.
for (let waited = 0; local.stats().leased > 0 && waited < 30; waited++) await sleep(1000);
const { leased } = local.stats();
await stop();
site.close();

const missing = seen.filter((count) => count === 0).length;
const facts = { inputs: INPUTS, ...counts, missing, 'browsers left': leased, seconds };
printTable(Object.keys(facts), [Object.values(facts)]);
for (const outcome of wrong.slice(0, 5)) console.log(outcome);
if (missing + counts.twice + leased + wrong.length > 0) process.exitCode = 1;

function startWorker(): ChildProcess {
  const args = ['dist/cli/main.js', 'work', 'soak', script, '--queue', 'soak', '--concurrency', '2'];
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    BROWSER_POOL_BASE_URL: local.baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: local.token,
  };
  return spawn(process.execPath, args, { env, stdio: 'ignore' });
}

function killOne(): void {
  const index = counts.killed++ % workers.length;
  void end(workers[index]!, 'SIGKILL');
  workers[index] = startWorker();
}

async function end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const exited = once(worker, 'exit');
  worker.kill(signal);
  await exited;
}

async function endWorkers(): Promise<void> {
  clearInterval(killing);
  await Promise.all(workers.map((worker) => end(worker, 'SIGINT')));
}

async function stop(): Promise<void> {
  await endWorkers();
  await redis[Symbol.asyncDispose]();
  await local.close();
  rmSync(folder, { recursive: true, force: true });
}

async function restartRedis(): Promise<void> {
  counts.restarts++;
  await redis.end();
  await redis.begin();
}
