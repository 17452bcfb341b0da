// A worker of ../queue.ts: a bare worker of BullMQ, or one of this library. Prints its heap at the end.
import { Worker } from 'bullmq';
import { workPooledBrowsers } from '../../../dist/bullmq.js';
import { connector } from '../../map/queue/programs/connector.mjs';

const [, , kind, queueName, port, concurrency, pagesPerLease] = process.argv;
const connection = { host: '127.0.0.1', port: Number(port) };

const stop = new AbortController();
const stopped = new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
process.once('SIGTERM', () => stop.abort());

let done = 0;
/** When the first task began. */
let began;
const count = () => {
  began ??= process.cpuUsage();
  done++;
};
const heaps = [];
setInterval(() => {
  if (done < 100) return;
  globalThis.gc();
  heaps.push(process.memoryUsage().heapUsed);
}, 2000).unref();

if (kind === 'bare') {
  const tasks = concurrency * pagesPerLease;
  const worker = new Worker(queueName, async () => count(), { connection, concurrency: tasks });
  await worker.waitUntilReady();
  process.stdout.write('ready\n');
  await stopped;
  await worker.close();
} else {
  const working = workPooledBrowsers(queueName, 'pool', count, {
    connection,
    connector,
    concurrency: Number(concurrency),
    pagesPerLease: Number(pagesPerLease),
    isolation: 'none',
    replays: 'off',
    idleTimeout: 60_000,
    signal: stop.signal,
  });
  process.stdout.write('ready\n');
  await working;
}
const { user, system } = process.cpuUsage(began);
globalThis.gc();
heaps.push(process.memoryUsage().heapUsed);
process.stdout.write(`${JSON.stringify({ cpu: user + system, first: heaps[0], last: heaps.at(-1) })}\n`);
process.exit();
