/** Adds pages to a queue, starts two workers, and kills one of them during a page: no page and no browser is lost. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { collectOutcomes, enqueueInputs } from 'pooled-browser/bullmq';
import { startLocalPool } from 'pooled-browser/local';
import { missing } from './missing.js';
import { startRedis } from './redis.js';
import { openSite } from './site.js';

const what = missing();
if (what === undefined) await run();
else console.log(`Skipped: ${what}.`);

async function run(): Promise<void> {
  // Uses the service that the environment names, or else starts a local pool of two browsers.
  await using local = process.env.BROWSER_POOL_BASE_URL
    ? undefined
    : await startLocalPool({ pools: [{ name: 'default', size: 2 }] });
  const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };
  await using redis = await startRedis();
  const connection = { host: '127.0.0.1', port: redis.port };
  const workers = new Map<string, ChildProcess>();
  await using site = await openSite(async () => {
    workers.get(await workerOf(connection, '/3'))!.kill('SIGKILL');
    console.log('A worker is killed while it reads page 3. The other one takes it over after 30 to 40 s.');
  });

  const urls = [1, 2, 3, 4, 5].map((number) => `${site.url}/${number}`);
  await enqueueInputs('pages', urls, { connection, retries: 2, backoff: { delay: 200 } });
  const env = { ...process.env, ...service, REDIS_URL: `redis://127.0.0.1:${redis.port}` };
  for (const name of ['worker-1', 'worker-2']) workers.set(name, startWorker(name, env));

  const lines: string[] = [];
  for await (const outcome of collectOutcomes('pages', { connection })) {
    const { status, attempts } = outcome;
    const result = status === 'fulfilled' ? String(outcome.value) : outcome.reason.message;
    lines.push(`${result}: ${status}, ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`);
  }
  console.log(lines.toSorted((one, other) => one.localeCompare(other)).join('\n'));

  await Promise.all([...workers.values()].map(end));
  if (local) console.log(`Browsers still leased: ${local.stats().leased}`);
}

/** The name of the worker that has the input. */
async function workerOf(connection: { host: string; port: number }, ending: string): Promise<string> {
  const queue = new Queue<{ input: string }>('pages', { connection });
  const jobs = await queue.getActive();
  await queue.close();
  return jobs.find(({ data }) => data.input.endsWith(ending))!.processedBy!;
}

function startWorker(name: string, env: NodeJS.ProcessEnv): ChildProcess {
  const path = fileURLToPath(new URL('worker.ts', import.meta.url));
  const args = ['--import', 'tsx', path, name];
  return spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
}

async function end(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  worker.kill('SIGTERM');
  await once(worker, 'exit');
}
