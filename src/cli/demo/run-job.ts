import { runOf, type FailedRun, type Run } from '../../lease/run.js';
import type { BrowserPool } from '../../service/browser-pool.js';
import { describeStep } from './describe-step.js';
import type { Job } from './jobs.js';
import type { Shop } from './shop/open-shop.js';
import type { Timeline } from './timeline.js';

/** Short, so that a job that waits says so while one watches; a real job asks for 25 seconds at a time. */
const POLL_TIMEOUT = 1000;
/** In ms. A demo that hangs says so rather than go on for minutes. */
const ACQUIRE_TIMEOUT = 60_000;
const TIMEOUT = 30_000;

export interface JobSetting {
  pool: BrowserPool;
  shop: Shop;
  timeline: Timeline;
  signal: AbortSignal;
}

/** How a job ended: with a receipt, or with an error. */
export interface Outcome {
  job: Job;
  run?: Run<string> | FailedRun | undefined;
  receipt?: string;
  error?: Error;
}

/** Runs one job and tells of each step. Rejects only when the demo itself is called off. */
export async function runJob(job: Job, { pool, shop, timeline, signal }: JobSetting): Promise<Outcome> {
  const { library, protocol, format } = job;
  const say = (what: string) => timeline.add(`${library} ${protocol}`, what, format);
  try {
    const run = await job.run({
      pool,
      shopUrl: shop.url,
      say: (what) => say(`  ${what}`),
      options: {
        name: `demo-${library}-${protocol}`,
        acquireTimeout: ACQUIRE_TIMEOUT,
        pollTimeout: POLL_TIMEOUT,
        timeout: TIMEOUT,
        signal,
        onEvent: (event) => {
          const step = describeStep(event);
          if (step !== undefined) say(step);
        },
      },
    });
    return { job, run, receipt: run.value };
  } catch (error) {
    signal.throwIfAborted();
    say(`failed: ${(error as Error).message}`);
    return { job, run: runOf(error), error: error as Error };
  }
}
