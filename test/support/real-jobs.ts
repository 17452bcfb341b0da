import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserSession, Pools } from '../../src/index.js';
import { mapPooledBrowsers } from '../../src/playwright.js';

/** A service that can be killed and started again at its address. */
interface Restartable {
  kill(): Promise<void>;
  begin(): Promise<void>;
}

/** What happened to the inputs of a job. */
export interface JobReport {
  /** For each input, its outcomes: `fulfilled`, `rejected`, or `wrong` with the value of another input. */
  readonly outcomes: readonly (readonly string[])[];
  /** Messages of the rejected inputs. */
  readonly errors: readonly string[];
  /** Number of attempts of all inputs. */
  readonly attempts: number;
  /** How many events of each type the leases had. */
  readonly events: Readonly<Record<string, number>>;
  /** How many browsers each pool leased. */
  readonly leases: Readonly<Record<string, number>>;
  /** Duration of the job in ms, and the longest time between two outcomes: that of the restart. */
  readonly duration: number;
  readonly longestPause: number;
}

/** Milliseconds between the end of a service and its new start. */
const DOWN = 1000;

/**
 * Visits a page for each input on more browsers than the service has, and kills the service with its browsers when a third of
 * the inputs has an outcome. It is started again one second later.
 */
export async function jobThroughRestart<Session extends object = BrowserSession>(
  pool: Pools<Session>,
  server: Restartable,
  inputs: number,
): Promise<JobReport> {
  const outcomes: string[][] = Array.from({ length: inputs }, () => []);
  const errors: string[] = [];
  const events: Record<string, number> = {};
  const leases: Record<string, number> = {};
  const onEvent = ({ type, pool: at }: { type: string; pool: string }) => {
    events[type] = (events[type] ?? 0) + 1;
    if (type === 'acquired') leases[at] = (leases[at] ?? 0) + 1;
  };
  let attempts = 0;
  let restarted: Promise<void> | undefined;
  const restart = async () => {
    await server.kill();
    await sleep(DOWN);
    await server.begin();
  };
  const began = performance.now();
  let [last, longestPause, count] = [began, 0, 0];
  const job = mapPooledBrowsers(
    pool,
    outcomes.keys(),
    async ({ page, input }) => {
      attempts++;
      await page.goto(`data:text/html,<title>${input}</title>`);
      return page.title();
    },
    { concurrency: 3, tasksPerLease: 5, retries: 3, failoverAfter: 2000, onEvent },
  );
  for await (const outcome of job) {
    const isRight = outcome.status === 'rejected' || outcome.value === String(outcome.input);
    outcomes[outcome.index]!.push(isRight ? outcome.status : 'wrong');
    if (outcome.status === 'rejected') errors.push(String(outcome.reason));
    const now = performance.now();
    longestPause = Math.max(longestPause, now - last);
    last = now;
    if (++count >= inputs / 3) restarted ??= restart();
  }
  const duration = performance.now() - began;
  await restarted;
  return { outcomes, errors, attempts, events, leases, duration, longestPause };
}
