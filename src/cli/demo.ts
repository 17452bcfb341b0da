import type { Command } from 'commander';
import type { DemoJob, DemoOutcome } from './demo-jobs.js';
import { CliError } from './errors.js';
import type { Interruption } from './interruption.js';
import { isInstalled } from './service.js';
import { formatTable, paintFor, type Format } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  command
    .option('--headful', 'show the windows of the browsers')
    .description(
      'Starts a pool of two browsers and a small shop on this machine, and runs three jobs at once that order ' +
        'in the shop: with Playwright, with Puppeteer, and with Puppeteer over WebDriver BiDi. One job must wait. ' +
        'Jobs whose library is not installed are left out.',
    )
    .addHelpText('after', HELP)
    .action(async ({ headful = false }: { headful?: boolean }) => demo(headful, signal));
}

const HELP = `
The demo needs no network and no account. It leaves only the recordings, in the folder
pooled-browser-recordings, or in that of BROWSER_POOL_LOCAL_RECORDINGS.

Example:
  $ pooled-browser demo`;

/** Runs a job with each installed library, on one browser less, and prints each step and a summary. */
async function demo(headful: boolean, signal: AbortSignal): Promise<void> {
  const { planJobs, runJobs } = await import('./demo-jobs.js');
  const plan = planJobs(isInstalled);
  print(paint('bold', plan.headline));
  for (const line of plan.leftOut) print(paint('yellow', line));
  print('');
  const outcomes = await runJobs(plan, headful, printStep, signal);
  print(`\n${summarize(outcomes)}\n`);
  const failed = outcomes.filter(({ error }) => error !== undefined).length;
  if (failed > 0) throw new CliError(`${failed} of ${outcomes.length} jobs failed.`);
  print(nextSteps(plan.jobs[0]!));
}

const paint = paintFor(process.stdout);
const start = performance.now();

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function printStep(who: string, what: string, format: Format = 'reset'): void {
  const time = seconds(performance.now() - start).padStart(8);
  print(`${paint('dim', time)}  ${paint(format, `${who.padEnd('playwright cdp'.length)}  ${what}`)}`);
}

function seconds(milliseconds: number | undefined): string {
  return milliseconds === undefined ? '-' : `${(milliseconds / 1000).toFixed(2)} s`;
}

const HEAD = 'library,protocol,acquire,connect,callback,cleanup,release,released,replays'.split(',');

/** Shows what each job read, the duration of its stages, and what happened to its browser and recordings. */
function summarize(outcomes: readonly DemoOutcome[]): string {
  const rows = outcomes.map(({ job, run }) => {
    const { acquire, connect, callback, cleanup, release } = run?.timings ?? {};
    const times = [acquire, connect, callback, cleanup, release].map(seconds);
    return [...job.name.split(' '), ...times, run?.released ?? '-', run?.replayStatus ?? '-'];
  });
  const [head, ...lines] = formatTable([HEAD, ...rows]);
  const read = outcomes.map(({ job, receipt, error }) => {
    return [`${job.name} read`, receipt ?? `nothing: ${error?.message}`];
  });
  const links = outcomes.map(({ job, run }) => {
    const [replay] = run?.replays ?? [];
    return [`${job.name} replay`, replay?.replay_view_url ?? 'none'];
  });
  return [paint('bold', head!), ...lines, '', ...formatTable(read), '', REPLAYS, ...formatTable(links)].join(
    '\n',
  );
}

const REPLAYS = 'The replays stay after the demo. Open each in a browser:';

/** Runs with either library. */
const CODE = `
import { withPooledBrowser } from 'pooled-browser/playwright';

const { value, released } = await withPooledBrowser('my-pool', async ({ page }) => {
  await page.goto('https://example.com');
  return page.title();
});
console.log(value, released);`;

function nextSteps({ name }: DemoJob): string {
  const [library = ''] = name.split(' ');
  const code = CODE.replace('playwright', library);
  return [
    paint('bold', 'Next, your own code, hello.mjs:'),
    ...code.split('\n').map((line) => (line === '' ? '' : `  ${paint('green', line)}`)),
    '',
    'It runs with the browser of this machine: BROWSER_POOL_BASE_URL=local node hello.mjs',
    'With the browsers of a service, only the variables change: see the README.',
  ].join('\n');
}
