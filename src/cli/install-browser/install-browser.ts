import { BrowserNotFoundError } from '../../shared/lease-errors.js';
import { findBrowser } from '../../local/browser/find-browser.js';
import { CliError } from '../cli-error.js';
import { interruptible } from '../interruptible.js';
import { checkStarts } from './check-starts.js';
import { readMachine } from './machine.js';
import { planDisplay, planInstall } from './plan.js';
import { runStep } from './run-step.js';

/** What the command line says about `install-browser`. */
export interface InstallOptions {
  headful?: true;
  json?: true;
}

/** Prints the path of a browser, after installing one where there is none. Progress goes to stderr. */
export async function installBrowser({ headful, json }: InstallOptions): Promise<void> {
  await interruptible(async (signal) => {
    const present = await tryFindBrowser();
    const executablePath = present ?? (await install(signal));
    const installed = present === undefined;
    const windows = headful ? { opensWindows: await ensureDisplay(signal) } : {};
    const text = `Browser: ${executablePath}${installed ? ' (installed now)' : ''}`;
    process.stdout.write(`${json ? JSON.stringify({ executablePath, installed, ...windows }) : text}\n`);
  });
}

async function tryFindBrowser(): Promise<string | undefined> {
  try {
    return await findBrowser();
  } catch (error) {
    if (!(error instanceof BrowserNotFoundError)) throw error;
    refuseWrongPath();
    return undefined;
  }
}

/** Nothing that could be installed would be used. */
function refuseWrongPath(): void {
  const { CHROME_PATH: path } = process.env;
  if (path)
    throw new CliError(`CHROME_PATH names ${path}, and there is no program. Correct it, or unset it.`);
}

async function install(signal: AbortSignal): Promise<string> {
  const { steps, summary, advice } = planInstall(readMachine());
  if (steps.length === 0) throw new CliError(`No Chrome or Chromium was found.\n${advice}`);
  process.stderr.write(`No Chrome or Chromium was found. ${summary}\n`);
  try {
    for (const step of steps) await runStep(step, signal);
    const executablePath = await findBrowser();
    await checkStarts(executablePath, signal);
    return executablePath;
  } catch (cause) {
    signal.throwIfAborted();
    throw new CliError(`${(cause as Error).message}\n${advice}`, undefined, { cause });
  }
}

/** Best effort: without a screen, headless pools work all the same. */
async function ensureDisplay(signal: AbortSignal): Promise<boolean> {
  const machine = readMachine();
  if (machine.opensWindows) return true;
  const { steps, summary, advice } = planDisplay(machine);
  if (steps.length > 0) process.stderr.write(`This machine has no screen. ${summary}\n`);
  try {
    for (const step of steps) await runStep(step, signal);
  } catch (error) {
    signal.throwIfAborted();
    process.stderr.write(`${(error as Error).message}\n`);
  }
  const { opensWindows } = readMachine();
  if (!opensWindows) process.stderr.write(`No Xvfb, no browser windows. ${advice}\n`);
  return opensWindows;
}
