// A worker of ../queue.ts: a bare worker of BullMQ, or one of this library. Prints its CPU time and its heap at the end.
import { once } from 'node:events';
import { Worker } from 'bullmq';
import { workPooledBrowsers } from '../../../dist/bullmq.js';
import { connector } from '../../jobs/queue/programs/connector.mjs';

const [, , kind, port] = process.argv;
const connection = { host: '127.0.0.1', port: Number(port) };
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());

/** When the first task began. */
let began;
const work = () => void (began ??= process.cpuUsage());

if (kind === 'bare') {
  const worker = new Worker(kind, async () => work(), { connection, concurrency: 40 });
  await worker.waitUntilReady();
  process.stdout.write('ready\n');
  await once(stop.signal, 'abort');
  await worker.close();
} else {
  const shape = { concurrency: 4, pagesPerLease: 10, isolation: 'none', replays: 'off', idleTimeout: 60_000 };
  const options = { connection, connector, ...shape, signal: stop.signal };
  const working = workPooledBrowsers(kind, 'pool', work, options);
  process.stdout.write('ready\n');
  await working;
}
const { user, system } = process.cpuUsage(began);
globalThis.gc();
console.log(JSON.stringify({ cpu: user + system, heap: process.memoryUsage().heapUsed }));
process.exit();
