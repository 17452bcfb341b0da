import { expect, it } from 'vitest';
import type { Machine } from '../../src/cli/install-browser/machine.js';
import { planInstall } from '../../src/cli/install-browser/plan.js';

const machine: Machine = {
  system: 'debian',
  isRoot: true,
  hasAptGet: true,
  playwrightInstaller: '/pw/cli.js',
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
  });
  expect(plan.steps).toEqual([]);
  expect(plan.advice).toContain('npm install playwright-core');
  expect(plan.advice).toContain('CHROME_PATH');
});

it('limits the time of every step', () => {
  for (const { limit } of planInstall(machine).steps) expect(limit).toBeLessThanOrEqual(15 * 60_000);
});

function commands(on: Machine): string[] {
  return planInstall(on).steps.map(({ command, args }) =>
    [command === process.execPath ? 'node' : command, ...args].join(' '),
  );
}
