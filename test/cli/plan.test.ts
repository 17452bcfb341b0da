import { expect, it } from 'vitest';
import type { Machine } from '../../src/cli/install-browser/machine.js';
import { planDisplay, planInstall, type InstallPlan } from '../../src/cli/install-browser/plan.js';

const machine: Machine = {
  system: 'debian',
  isRoot: true,
  hasAptGet: true,
  playwrightInstaller: '/pw/cli.js',
  opensWindows: false,
};

it("installs Debian's package as root", () => {
  expect(commands(machine)).toEqual([
    'apt-get update',
    'apt-get install -y --no-install-recommends chromium',
  ]);
});

it("takes Playwright's Chromium on Ubuntu, whose package is only a pointer to a snap", () => {
  expect(commands({ ...machine, system: 'ubuntu' })).toEqual([
    'node /pw/cli.js install --with-deps chromium',
  ]);
});

it("takes Playwright's Chromium without root, and tells the line that needs root", () => {
  const user = { ...machine, isRoot: false };
  expect(commands(user)).toEqual(['node /pw/cli.js install chromium']);
  expect(planInstall(user).advice).toContain('sudo apt-get install');
  expect(planInstall({ ...user, system: 'ubuntu' }).advice).toContain(
    'sudo npx playwright-core install-deps',
  );
});

it("takes Playwright's Chromium on other systems", () => {
  expect(commands({ ...machine, system: 'other', hasAptGet: false })).toEqual([
    'node /pw/cli.js install chromium',
  ]);
});

it('says exactly what to install where it can run nothing', () => {
  const plan = planInstall({
    system: 'other',
    isRoot: false,
    hasAptGet: false,
    playwrightInstaller: undefined,
    opensWindows: false,
  });
  expect(plan.steps).toEqual([]);
  expect(plan.advice).toContain('npm install playwright-core');
  expect(plan.advice).toContain('CHROME_PATH');
});

it('installs Xvfb as root on Debian and Ubuntu, and tells the line elsewhere', () => {
  const xvfb = ['apt-get update', 'apt-get install -y --no-install-recommends xvfb'];
  expect(lines(planDisplay(machine))).toEqual(xvfb);
  expect(lines(planDisplay({ ...machine, system: 'ubuntu' }))).toEqual(xvfb);
  const user = planDisplay({ ...machine, isRoot: false });
  expect(lines(user)).toEqual([]);
  expect(user.advice).toContain('as root, apt-get install -y --no-install-recommends xvfb');
  const other = planDisplay({ ...machine, system: 'other' });
  expect(lines(other)).toEqual([]);
  expect(other.advice).toContain('install Xvfb');
});

it('limits the time of every step', () => {
  for (const { limit } of planInstall(machine).steps) expect(limit).toBeLessThanOrEqual(15 * 60_000);
});

function commands(on: Machine): string[] {
  return lines(planInstall(on));
}

function lines({ steps }: InstallPlan): string[] {
  return steps.map(({ command, args }) =>
    [command === process.execPath ? 'node' : command, ...args].join(' '),
  );
}
