import { BrowserPool } from '../../service/browser-pool.js';
import { CliError } from '../cli-error.js';
import { interruptible } from '../interruptible.js';
import { paintFor } from '../paint.js';
import { startPool } from '../start-pool.js';
import { jobs } from './jobs.js';
import { loadLibraries, requireLibraries } from './libraries.js';
import { nextSteps } from './next-steps.js';
import { runJob, type Outcome } from './run-job.js';
import { openShop } from './shop/open-shop.js';
import { summarize } from './summary.js';
import { Timeline } from './timeline.js';

const POOL = 'demo';
const SIZE = 2;

/** Three jobs on a pool of two browsers, each step as it happens, and a summary. */
export async function demo(): Promise<void> {
  requireLibraries();
  const paint = paintFor(process.stdout);
  const print = (text: string) => process.stdout.write(`${text}\n`);
  let outcomes: readonly Outcome[] = [];
  await interruptible(async (signal) => {
    print(
      `${paint('bold', `${jobs.length} jobs, ${SIZE} browsers`)}: one of the jobs has to wait its turn.\n`,
    );
    outcomes = await runJobs(new Timeline(paint), signal);
  });
  print(`\n${summarize(outcomes, paint)}\n`);
  const failed = outcomes.filter(({ error }) => error !== undefined).length;
  if (failed > 0) throw new CliError(`${failed} of ${outcomes.length} jobs failed.`);
  print(nextSteps(paint));
}

async function runJobs(timeline: Timeline, signal: AbortSignal): Promise<Outcome[]> {
  // A service elsewhere would not be held up by a library that loads here; this one would be.
  await loadLibraries();
  timeline.add('libraries', 'Playwright and Puppeteer are loaded');
  await using local = await startPool({ pools: [{ name: POOL, size: SIZE }] }, signal);
  timeline.add('pool', `${SIZE} browsers behind ${local.baseUrl}`);
  await using shop = await openShop();
  timeline.add('shop', `open at ${shop.url}`);
  await using pool = new BrowserPool(POOL, { baseUrl: local.baseUrl, token: local.token });
  const outcomes = await Promise.all(jobs.map((job) => runJob(job, { pool, shop, timeline, signal })));
  await pool.close();
  await local.close();
  timeline.add('pool', 'closed: no browser, profile or socket is left');
  return outcomes;
}
