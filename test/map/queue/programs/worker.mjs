// A worker whose tasks take a while, on browsers without pages. Run by ../crash.test.ts.
import { workPooledBrowsers } from '../../../../dist/bullmq.js';
import { connector } from './connector.mjs';

const [, , queueName, duration, maxStalledCount] = process.argv;

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
process.stdout.write('ready\n');

const task = async ({ input }) => {
  process.stdout.write(`began ${input}\n`);
  await new Promise((resolve) => setTimeout(resolve, Number(duration)));
  return process.pid;
};
// The defaults would make the test wait: the lock of a dead worker lasts 30 s.
const locks = { lockDuration: 1000, stalledInterval: 300, maxStalledCount: Number(maxStalledCount) };
const options = { ...locks, replays: 'off', signal: stop.signal };
const summary = await workPooledBrowsers(queueName, 'pool', task, { ...options, connector });
process.stdout.write(`${JSON.stringify(summary)}\n`);
