// A worker whose tasks take a while, on browsers without pages. Run by ../crash.more.test.ts.
import { workPooledBrowsers } from '../../../../dist/bullmq.js';
import { connector } from './connector.mjs';

const [, , queueName, ...numbers] = process.argv;
const [duration, lockDuration, maxStalledCount] = numbers.map(Number);

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
process.stdout.write('ready\n');

const task = async ({ input }) => {
  process.stdout.write(`began ${input}\n`);
  await new Promise((resolve) => setTimeout(resolve, duration));
  return process.pid;
};
const locks = { lockDuration, stalledInterval: 300, maxStalledCount };
const options = { ...locks, replays: 'off', signal: stop.signal };
const summary = await workPooledBrowsers(queueName, 'pool', task, { ...options, connector });
process.stdout.write(`${JSON.stringify(summary)}\n`);
