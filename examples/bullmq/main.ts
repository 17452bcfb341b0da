/** Adds pages to a BullMQ queue, starts two worker processes, and kills one during a job: no page is lost. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Job, Queue, QueueEvents } from 'bullmq';
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
  const queue = new Queue<{ url: string }, string>('pages', { connection });
  const events = new QueueEvents('pages', { connection });
  const workers = new Map<string, ChildProcess>();
  await using site = await openSite(async () => {
    const { processedBy } = (await Job.fromId(queue, 'page-3'))!;
    workers.get(processedBy!)!.kill('SIGKILL');
    console.log('A worker is killed while it reads page 3.');
  });

  // BullMQ retries failed jobs.
  const retries = { attempts: 3, backoff: { type: 'exponential', delay: 200 } };
  const jobs = await queue.addBulk(
    [1, 2, 3, 4, 5].map((number) => {
      const data = { url: `${site.url}/${number}` };
      return { name: 'read', data, opts: { ...retries, jobId: `page-${number}` } };
    }),
  );
  for (const name of ['worker-1', 'worker-2']) {
    workers.set(name, startWorker([name, `${redis.port}`], { ...process.env, ...service }));
  }
  await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  for (const { id } of jobs) {
    const { returnvalue, attemptsStarted, stalledCounter } = (await Job.fromId(queue, id!))!;
    console.log(`${returnvalue}: started ${attemptsStarted}x, lost its worker ${stalledCounter}x`);
  }

  await Promise.all([...workers.values()].map(end));
  await queue.close();
  await events.close();
  if (local) console.log(`Browsers still leased: ${local.stats().leased}`);
}

function startWorker(args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const path = fileURLToPath(new URL('worker.ts', import.meta.url));
  const stdio = ['ignore', 'inherit', 'inherit'] as const;
  return spawn(process.execPath, ['--import', 'tsx', path, ...args], { env, stdio: [...stdio] });
}

/** Ends a worker after its current job. */
async function end(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  worker.kill('SIGTERM');
  await once(worker, 'exit');
}
