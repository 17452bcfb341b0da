import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Argument, type Command } from 'commander';
import { environment } from '../shared/environment.js';
import { helperCommand } from '../shared/runtime.js';
import { BrowserNotFoundError } from '../shared/lease-errors.js';
import { findBrowser, PLACES } from '../local/browser/find-browser.js';
import { findXvfb, lacksDisplay } from '../local/browser/virtual-display.js';
import type { LocalBrowserKind } from '../pool/pool-options.js';
import { askFirst } from './confirm.js';
import { CliError } from './errors.js';
import type { Interruption } from './interruption.js';
import { printable } from '../shared/redact.js';
import { printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  command
    .description('Finds an installed browser, or installs one, and prints its path.')
    .addArgument(
      new Argument('[browser]', 'which browser').choices(['chromium', 'firefox']).default('chromium'),
    )
    .option('--headful', 'also install Xvfb where browsers can open no windows')
    .option('--yes', 'as root on Debian: install packages of the system without a question')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (browser: LocalBrowserKind, options: InstallOptions) =>
      installBrowser(browser, options, signal),
    );
}

const HELP = `
Without a browser, this command runs:
  as root on Debian    apt-get update, apt-get install -y --no-install-recommends chromium
                       (or firefox-esr)
  elsewhere            for chromium, the installer of the package playwright-core
With --headful, without a display and Xvfb, as root on Debian and Ubuntu:
                       apt-get update, apt-get install -y --no-install-recommends xvfb
It prints each command before it runs it, asks before it installs packages of the system, and never
calls sudo.

Examples:
  $ pooled-browser install-browser
  $ pooled-browser install-browser --headful
  $ pooled-browser install-browser --yes     in scripts and images
  $ pooled-browser install-browser firefox
  $ pooled-browser install-browser --json | jq -r .executablePath`;

interface InstallOptions {
  headful?: true;
  yes?: true;
  json?: true;
}

/** Prints the path of a browser on stdout, after installing one if necessary. Progress goes to stderr. */
async function installBrowser(
  browser: LocalBrowserKind,
  { headful, yes, json }: InstallOptions,
  signal: AbortSignal,
): Promise<void> {
  const present = await tryFindBrowser(browser);
  const executablePath = present ?? (await install(browser, yes, signal));
  const installed = present === undefined;
  const windows = headful ? { opensWindows: await ensureDisplay(yes, signal) } : {};
  if (json) printJson({ executablePath, installed, ...windows });
  else process.stdout.write(`Browser: ${printable(executablePath)}${installed ? ' (installed now)' : ''}\n`);
}

async function tryFindBrowser(browser: LocalBrowserKind): Promise<string | undefined> {
  try {
    return await findBrowser({ browser });
  } catch (error) {
    if (!(error instanceof BrowserNotFoundError)) throw error;
    const { variable } = PLACES[browser];
    const path = environment.browserPath(variable);
    if (path === undefined) return undefined;
    throw new CliError(`${variable} is ${path}, which is not an executable file. Correct or unset it.`);
  }
}

async function install(
  browser: LocalBrowserKind,
  yes: true | undefined,
  signal: AbortSignal,
): Promise<string> {
  const commands = commandsForBrowser(readMachine(), browser);
  const advice = ADVICE[browser];
  process.stderr.write(`No ${PLACES[browser].name} was found.\n`);
  if (commands.length === 0) throw new CliError(advice);
  if (!yes) await askForPackages(commands, signal);
  try {
    await runAll(commands, signal);
    const executablePath = await findBrowser({ browser });
    // A downloaded browser may lack system libraries. On Windows, --version would open a window.
    if (process.platform !== 'win32') await runAll([[executablePath, '--version']], signal);
    return executablePath;
  } catch (cause) {
    signal.throwIfAborted();
    throw new CliError(`${(cause as Error).message}\n${advice}`, undefined, { cause });
  }
}

/** Packages change the system for all its users. */
async function askForPackages(commands: readonly string[][], signal: AbortSignal): Promise<void> {
  if (commands[0] !== UPDATE) return;
  const lines = commands.map((words) => words.join(' ')).join(', then ');
  await askFirst(`Install packages of the system with ${lines}?`, 'Nothing was installed.', signal);
}

const APT_INSTALL = 'apt-get install -y --no-install-recommends';

const ADVICE: Readonly<Record<LocalBrowserKind, string>> = {
  chromium: [
    'To get a browser, do one of these:',
    `- On Debian: sudo apt-get update && sudo ${APT_INSTALL} chromium`,
    '- Elsewhere: npm install playwright-core, then run this command again.',
    '  On Ubuntu, Chromium may need: sudo npx playwright-core install-deps chromium',
    '- Install Chrome or Chromium in any other way. If it is not found, set CHROME_PATH to its path.',
  ].join('\n'),
  firefox: [
    'To get Firefox, do one of these:',
    `- On Debian: sudo apt-get update && sudo ${APT_INSTALL} firefox-esr`,
    '- Install Firefox in any other way. If it is not found, set FIREFOX_PATH to its path.',
  ].join('\n'),
};

const PACKAGES: Readonly<Record<LocalBrowserKind, string>> = { chromium: 'chromium', firefox: 'firefox-esr' };

/** Facts that decide how a browser is installed. */
export interface Machine {
  system: 'debian' | 'ubuntu' | 'other';
  isRoot: boolean;
  /** Path of the installer in the package playwright-core. */
  playwrightInstaller: string | undefined;
}

/** Returns the commands that install a browser: the package of Debian, or else the installer of Playwright. */
export function commandsForBrowser(
  { system, isRoot, playwrightInstaller }: Machine,
  browser: LocalBrowserKind = 'chromium',
): string[][] {
  if (system === 'debian' && isRoot) return installPackage(PACKAGES[browser]);
  // Playwright's Firefox has no WebDriver BiDi that others can use.
  if (playwrightInstaller === undefined || browser === 'firefox') return [];
  // Ubuntu's package chromium only installs a snap, which does not run in containers.
  const withLibraries = isRoot && system === 'ubuntu' ? ['--with-deps'] : [];
  const { command, args } = helperCommand(
    { file: playwrightInstaller },
    'install',
    ...withLibraries,
    'chromium',
  );
  return [[command, ...args]];
}

/** Returns the commands that install Xvfb, a display for browsers with windows. */
export function commandsForDisplay({ system, isRoot }: Machine): string[][] {
  return isRoot && system !== 'other' ? installPackage('xvfb') : [];
}

function installPackage(name: string): string[][] {
  return [UPDATE, [...APT_INSTALL.split(' '), name]];
}

const UPDATE = ['apt-get', 'update'];

function readMachine(): Machine {
  // Ubuntu also names debian, as the system that it is based on. See os-release(5).
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const isBasedOn = (id: string) => new RegExp(`^ID(_LIKE)?=.*\\b${id}\\b`, 'm').test(release);
  return {
    system: (['ubuntu', 'debian'] as const).find(isBasedOn) ?? 'other',
    isRoot: process.getuid?.() === 0,
    playwrightInstaller: findPlaywrightInstaller(),
  };
}

function findPlaywrightInstaller(): string | undefined {
  try {
    return fileURLToPath(new URL('cli.js', import.meta.resolve('playwright-core/package.json')));
  } catch {
    return undefined;
  }
}

/** Installs Xvfb if necessary. A failure is only printed: headless browsers work without a display. */
async function ensureDisplay(yes: true | undefined, signal: AbortSignal): Promise<boolean> {
  if (opensWindows()) return true;
  process.stderr.write('This machine has no display. Browser windows need Xvfb.\n');
  const commands = commandsForDisplay(readMachine());
  if (!yes) await askForPackages(commands, signal);
  try {
    await runAll(commands, signal);
  } catch (error) {
    signal.throwIfAborted();
    process.stderr.write(`${printable((error as Error).message)}\n`);
  }
  if (!opensWindows()) {
    process.stderr.write(
      `Xvfb is missing. For pools with headless: false, install it: ${APT_INSTALL} xvfb\n`,
    );
  }
  return opensWindows();
}

function opensWindows(): boolean {
  return !lacksDisplay() || findXvfb() !== undefined;
}

/** In ms. */
const COMMAND_TIMEOUT = 15 * 60_000;

/** Runs commands one after the other, with their output on stderr. */
async function runAll(commands: readonly string[][], signal: AbortSignal): Promise<void> {
  for (const words of commands) {
    const line = words.join(' ');
    process.stderr.write(`$ ${line}\n`);
    const child = spawn(words[0]!, words.slice(1), {
      stdio: ['ignore', process.stderr, process.stderr],
      // The installers of packages must not ask questions.
      env: { ...environment.forProgram(), DEBIAN_FRONTEND: 'noninteractive' },
      timeout: COMMAND_TIMEOUT,
      signal,
    });
    const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0) continue;
    const failure = `${line} ${code === null ? `was ended by ${by}` : `exited with ${code}`}.`;
    // One unreachable source fails the update, but another source may have the package.
    if (words !== UPDATE) throw new Error(failure);
    process.stderr.write(`${failure} Continuing.\n`);
  }
}
