/**
 * `npm run bench -- queue`: what a worker of this library adds to a bare worker of BullMQ with an empty handler. INPUTS
 * (default 100,000) over PROCESSES (default 4) processes, each with 4 browsers of 10 pages, on a simulated service without
 * Chromium. Needs redis-server.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { collectOutcomes, enqueueInputs } from '../../src/bullmq.js';
import { MapBench } from '../jobs/support.js';
import { TestRedis } from '../support/redis-server.js';
import { printTable, setting, time } from './bench.js';

const INPUTS = setting('INPUTS', 100_000);
const PROCESSES = setting('PROCESSES', 4);
const WORKER = fileURLToPath(new URL('programs/queue-worker.mjs', import.meta.url));

await using redis = await TestRedis.start();
await using bench = await MapBench.start(PROCESSES * 4);
const rows = [await measure('bare'), await measure('ours')];
printTable(
  ['worker', 'inputs per second', 'CPU per input', 'most memory of Redis', 'heap of a worker'],
  rows,
);

async function measure(kind: 'bare' | 'ours'): Promise<string[]> {
  const queue = new Queue(kind, { connection: { host: '127.0.0.1', port: redis.port } });
  await queue.pause();
  await enqueueInputs(kind, inputs(), { connection: redis.url });
  const workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWorker(kind)));
  // The workers wait for jobs.
  await sleep(500);
  const worked = await time(async () => {
    await queue.resume();
    while ((await queue.getCompletedCount()) < INPUTS) await sleep(20);
  });
  const ends = await Promise.all(workers.map(endWorker));
  const client = await redis.connect();
  const [, peak] = /used_memory_peak:(\d+)/.exec(await client.info('memory'))!;
  client.disconnect();
  if (kind === 'ours') await collectAll();
  await queue.obliterate({ force: true });
  await queue.close();
  const cpu = ends.reduce((sum, end) => sum + end.cpu, 0) / INPUTS;
  const heaps = ends.map(({ heap }) => megabytes(heap)).join(', ');
  return [
    kind,
    ((INPUTS / worked) * 1000).toFixed(0),
    `${cpu.toFixed(0)} µs`,
    megabytes(Number(peak)),
    heaps,
  ];
}

function* inputs(): Generator<string> {
  for (let index = 0; index < INPUTS; index++) yield `https://shop.example.com/products/${index}`;
}

async function collectAll(): Promise<void> {
  const seen = new Uint8Array(INPUTS);
  for await (const { index } of collectOutcomes('ours', { connection: redis.url })) seen[index]!++;
  const wrong = seen.filter((count) => count !== 1).length;
  if (wrong > 0) throw new Error(`${wrong} inputs do not have exactly one result`);
}

async function startWorker(kind: string): Promise<ChildProcess> {
  const { baseUrl, token } = bench.service.options;
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const args = ['--expose-gc', WORKER, kind, String(redis.port)];
  const worker = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(worker.stdout, 'data');
  return worker;
}

/** Resolves to the worker's processor time since its first task, in microseconds, and its heap at the end, in bytes. */
async function endWorker(worker: ChildProcess): Promise<{ cpu: number; heap: number }> {
  worker.kill('SIGTERM');
  const [output] = (await once(worker.stdout!, 'data')) as [Buffer];
  return JSON.parse(String(output)) as { cpu: number; heap: number };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
