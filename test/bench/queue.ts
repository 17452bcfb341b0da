/**
 * `npm run bench:queue`: what a worker of this library adds to a bare worker of BullMQ with an empty handler. INPUTS
 * (default 100,000) over PROCESSES (default 4) processes, each with CONCURRENCY (default 4) browsers of PAGES (default 10)
 * lanes, on a played service without Chromium; ROUNDS (default 1) of both in turn. Also: memory of Redis and of the
 * workers, and the rates of adding and collecting.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { collectOutcomes, enqueueInputs } from '../../src/bullmq.js';
import { MapBench } from '../map/support.js';
import { TestRedis } from '../support/redis-server.js';
import { printTable, setting } from './bench.js';

const INPUTS = setting('INPUTS', 100_000);
const PROCESSES = setting('PROCESSES', 4);
const CONCURRENCY = setting('CONCURRENCY', 4);
const PAGES = setting('PAGES', 10);
const ROUNDS = setting('ROUNDS', 1);

const KINDS = ['bare', 'ours'] as const;
type Kind = (typeof KINDS)[number];

const WORKER = fileURLToPath(new URL('programs/queue-worker.mjs', import.meta.url));

await using redis = await TestRedis.start();
await using bench = await MapBench.start(PROCESSES * CONCURRENCY);
const connection = redis.url;
const times: Record<Kind, number[]> = { bare: [], ours: [] };
const processorTimes: Record<Kind, number[]> = { bare: [], ours: [] };
const rows: string[][] = [];
for (let round = 0; round < ROUNDS; round++) for (const kind of KINDS) rows.push(await measure(kind, round));
const head = [
  'worker',
  'adding',
  'working',
  'each',
  'processor time each',
  'collecting',
  'Redis: added, done, collected',
  'heap of a worker',
];
printTable(head, rows);
const ratio = (of: Record<Kind, number[]>) => (Math.min(...of.ours) / Math.min(...of.bare)).toFixed(2);
console.log(`${INPUTS} inputs, ${PROCESSES} processes, against bare BullMQ: ${ratio(times)} times its time,`);
// Other work on the same machine changes this ratio less.
console.log(`and ${ratio(processorTimes)} times the processor time of its workers.`);
console.log(`Browsers still leased: ${bench.leased}`);

async function measure(kind: Kind, round: number): Promise<string[]> {
  const name = `${kind}-${round}`;
  const queue = new Queue(name, { connection: { host: '127.0.0.1', port: redis.port } });
  await queue.pause();
  const added = await timed(() => enqueueInputs(name, inputs(), { connection }));
  const memory = [await memoryOfRedis()];
  const workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWorker(kind, name)));
  // The workers wait for jobs.
  await sleep(500);
  const worked = await timed(async () => {
    await queue.resume();
    while ((await queue.getCompletedCount()) < INPUTS) await sleep(20);
  });
  times[kind].push(worked);
  memory.push(await memoryOfRedis());
  const ends = await Promise.all(workers.map(endWorker));
  // Microseconds of all workers.
  const processor = ends.reduce((sum, { cpu }) => sum + cpu, 0);
  processorTimes[kind].push(processor);
  const collected = kind === 'ours' ? await timed(() => collectAll(name)) : Number.NaN;
  if (kind === 'bare') await queue.obliterate({ force: true });
  memory.push(await memoryOfRedis());
  await queue.close();
  const rate = (time: number) =>
    Number.isNaN(time) ? '' : `${seconds(time)}, ${((INPUTS / time) * 1000).toFixed(0)}/s`;
  const [each, processorEach] = [worked * 1000, processor].map((time) => `${(time / INPUTS).toFixed(0)} µs`);
  const heaps = ends.map(({ first, last }) => `${megabytes(first)} to ${megabytes(last)}`);
  const figures = [rate(added), rate(worked), each!, processorEach!, rate(collected)];
  return [kind, ...figures, memory.join(', '), heaps.join('; ')];
}

function* inputs(): Generator<string> {
  for (let index = 0; index < INPUTS; index++) yield `https://shop.example.com/products/${index}`;
}

async function collectAll(name: string): Promise<void> {
  const seen = new Uint8Array(INPUTS);
  for await (const { index } of collectOutcomes(name, { connection })) seen[index]!++;
  const wrong = seen.filter((count) => count !== 1).length;
  if (wrong > 0) throw new Error(`${wrong} inputs do not have exactly one result`);
}

async function startWorker(kind: Kind, name: string): Promise<ChildProcess> {
  const args = ['--expose-gc', WORKER, kind, name, `${redis.port}`, `${CONCURRENCY}`, `${PAGES}`];
  const { baseUrl, token } = bench.service.options;
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const worker = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(worker.stdout, 'data');
  return worker;
}

interface WorkerEnd {
  /** Processor time since the first task, in microseconds. */
  readonly cpu: number;
  /** Heap at the first sample and at the end, in bytes. */
  readonly first: number;
  readonly last: number;
}

async function endWorker(worker: ChildProcess): Promise<WorkerEnd> {
  let output = '';
  worker.stdout!.on('data', (text: Buffer) => (output += String(text)));
  worker.kill('SIGTERM');
  await once(worker, 'close');
  return JSON.parse(output) as WorkerEnd;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function memoryOfRedis(): Promise<string> {
  const client = await redis.connect();
  const [, bytes] = /used_memory:(\d+)/.exec(await client.info('memory'))!;
  client.disconnect();
  return megabytes(Number(bytes));
}

function seconds(time: number): string {
  return `${(time / 1000).toFixed(1)} s`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
