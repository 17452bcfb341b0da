import type { Machine } from './machine.js';

/** One command to run. */
export interface Step {
  command: string;
  args: readonly string[];
  /** Milliseconds after which it is given up. */
  limit: number;
  /** Goes on when it fails: the next step decides. */
  optional?: boolean;
}

/** What to run, in order; nothing where this machine offers no way. */
export interface InstallPlan {
  steps: readonly Step[];
  /** What will happen, for the person who waits. */
  summary: string;
  /** What the person can do when it does not work. */
  advice: string;
}

const MINUTE = 60_000;
const CHROMIUM = ['install', '-y', '--no-install-recommends', 'chromium'] as const;
const XVFB = ['install', '-y', '--no-install-recommends', 'xvfb'] as const;

/** Debian's package where we may install it; Playwright's installer otherwise. */
export function planInstall(machine: Machine): InstallPlan {
  if (machine.system === 'debian' && machine.hasAptGet && machine.isRoot) return debianPackage();
  const advice = adviceFor(machine);
  if (machine.playwrightInstaller === undefined) return { steps: [], summary: '', advice };
  return playwrightBrowser(machine, machine.playwrightInstaller, advice);
}

/** A screen for browsers with windows where there is none: the distribution's Xvfb, where we may install it. */
export function planDisplay({ system, isRoot, hasAptGet }: Machine): InstallPlan {
  const hasPackage = system !== 'other' && hasAptGet;
  const command = hasPackage ? `apt-get ${XVFB.join(' ')}` : 'install Xvfb';
  return {
    summary: 'Installing Xvfb, a screen for browsers with windows.',
    steps: hasPackage && isRoot ? [UPDATE, { command: 'apt-get', args: XVFB, limit: 15 * MINUTE }] : [],
    advice: `Pools with headless: false need it, others don't: ${isRoot ? '' : 'as root, '}${command}`,
  };
}

/** One source that can't be reached fails it, and the package may well come from another one. */
const UPDATE: Step = { command: 'apt-get', args: ['update'], limit: 5 * MINUTE, optional: true };

function debianPackage(): InstallPlan {
  return {
    summary: "Installing Debian's package chromium.",
    steps: [UPDATE, { command: 'apt-get', args: CHROMIUM, limit: 15 * MINUTE }],
    advice: 'Look at what apt-get said above; any other Chrome or Chromium does as well (CHROME_PATH).',
  };
}

function playwrightBrowser({ system, isRoot }: Machine, installer: string, advice: string): InstallPlan {
  // Ubuntu's package chromium is only a pointer to a snap, which containers can't run.
  const withLibraries = isRoot && (system === 'debian' || system === 'ubuntu') ? ['--with-deps'] : [];
  const args = [installer, 'install', ...withLibraries, 'chromium'];
  return {
    summary: "Downloading Playwright's Chromium.",
    steps: [{ command: process.execPath, args, limit: 15 * MINUTE }],
    advice,
  };
}

function adviceFor({ system, isRoot, hasAptGet, playwrightInstaller }: Machine): string {
  const ways = [
    ...(system === 'debian' && hasAptGet && !isRoot
      ? [`sudo apt-get update && sudo apt-get ${CHROMIUM.join(' ')}`]
      : []),
    ...(playwrightInstaller === undefined ? ['npm install playwright-core, then this command again'] : []),
    ...(system === 'ubuntu' && !isRoot ? ['sudo npx playwright-core install-deps chromium'] : []),
    'install Chrome or Chromium in any other way, and name it in CHROME_PATH if it is not found',
  ];
  return `What you can do:\n${ways.map((way) => `  - ${way}`).join('\n')}`;
}
