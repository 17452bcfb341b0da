import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandsForBrowser, commandsForDisplay, type Machine } from '../../src/cli/install-browser.js';
import { runCli } from './support.js';

it('prints the path of an installed browser', async () => {
  const { code, stdout, stderr } = await runCli(['install-browser']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, path] = /^Browser: (.+)\n$/.exec(stdout)!;
  expect(existsSync(path!)).toBe(true);
});

it('prints JSON with --json', async () => {
  const { stdout } = await runCli(['install-browser', '--json']);
  expect(JSON.parse(stdout)).toEqual({ executablePath: expect.any(String), installed: false });
});

it('refuses to install anything while CHROME_PATH is wrong', async () => {
  const { code, stdout, stderr } = await runCli(['install-browser'], { CHROME_PATH: '/nowhere' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('CHROME_PATH is /nowhere');
});

it.runIf(process.platform === 'linux')(
  'prints its commands, runs them, and checks that the browser starts',
  async () => {
    const machine = machineWithoutBrowser({ user: '0', system: 'debian', script: INSTALLS });
    const { code, stdout, stderr } = await runCli(['install-browser'], machine.environment);
    expect(code).toBe(0);
    expect(machine.ran()).toEqual([
      'update noninteractive',
      'install -y --no-install-recommends chromium noninteractive',
    ]);
    expect(stderr).toContain('No Chrome or Chromium was found.');
    expect(stderr).toContain('$ apt-get update\n');
    expect(stderr).toContain('$ apt-get install -y --no-install-recommends chromium\n');
    expect(stdout).toMatch(/^Browser: .*chrom.* \(installed now\)\n$/);
  },
);

it.runIf(process.platform === 'linux')('continues when apt-get update fails', async () => {
  const script = `case "$1" in update) exit 100;; *) ${INSTALLS};; esac`;
  const machine = machineWithoutBrowser({ user: '0', system: 'debian', script });
  const { code, stderr } = await runCli(['install-browser'], machine.environment);
  expect(code).toBe(0);
  expect(stderr).toContain('$ apt-get update\napt-get update exited with 100. Continuing.');
});

it.runIf(process.platform === 'linux')('fails with the failed command, and what to do', async () => {
  const machine = machineWithoutBrowser({
    user: '0',
    system: 'debian',
    script: 'echo "E: no such package"; exit 100',
  });
  const { code, stdout, stderr } = await runCli(['install-browser'], machine.environment);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('E: no such package');
  expect(stderr).toContain('install -y --no-install-recommends chromium exited with 100.');
  expect(stderr).toContain('CHROME_PATH');
});

it.runIf(process.platform === 'linux')(
  'never calls sudo: without root, it downloads and prints the command for root',
  async () => {
    const machine = machineWithoutBrowser({ user: '1000', system: 'debian', script: INSTALLS });
    const { code, stderr } = await runCli(['install-browser'], machine.environment);
    expect(code).toBe(1);
    expect(machine.ran()).toEqual([]);
    expect(stderr).toMatch(/\$ .*playwright-core.*cli\.js install chromium\n/);
    expect(stderr).toContain(
      'sudo apt-get update && sudo apt-get install -y --no-install-recommends chromium',
    );
  },
);

describe.runIf(process.platform === 'linux')('--headful, on a machine without a display', () => {
  it('installs Xvfb', async () => {
    const machine = machineWithoutDisplay('/bin/cp "$0" "${0%/*}/Xvfb"');
    const { code, stdout, stderr } = await runCli(
      ['install-browser', '--headful', '--json'],
      machine.environment,
    );
    expect(JSON.parse(stdout)).toMatchObject({ installed: false, opensWindows: true });
    expect(stderr).toContain('This machine has no display.');
    expect(machine.ran()).toEqual([
      'update noninteractive',
      'install -y --no-install-recommends xvfb noninteractive',
    ]);
    expect(code).toBe(0);
  });

  it('prints what is missing when that fails, and succeeds: headless browsers need no display', async () => {
    const machine = machineWithoutDisplay('exit 100');
    const { code, stdout, stderr } = await runCli(['install-browser', '--headful'], machine.environment);
    expect(stdout).toMatch(/^Browser: /);
    expect(stderr).toContain('Xvfb is missing. For pools with headless: false, install it: apt-get install');
    expect(code).toBe(0);
  });
});

const debian: Machine = { system: 'debian', isRoot: true, playwrightInstaller: '/pw/cli.js' };
const UPDATE = 'apt-get update';
const CHROMIUM = 'apt-get install -y --no-install-recommends chromium';
const XVFB = 'apt-get install -y --no-install-recommends xvfb';

it.each<[string, Partial<Machine>, string[]]>([
  ['the package of Debian as root', {}, [UPDATE, CHROMIUM]],
  [
    "Playwright's Chromium and its libraries on Ubuntu as root, where the package is only a snap",
    { system: 'ubuntu' },
    ['node /pw/cli.js install --with-deps chromium'],
  ],
  ["Playwright's Chromium without root", { isRoot: false }, ['node /pw/cli.js install chromium']],
  ["Playwright's Chromium on other systems", { system: 'other' }, ['node /pw/cli.js install chromium']],
  ['nothing without playwright-core', { system: 'other', playwrightInstaller: undefined }, []],
])('installs %s', (_what, machine, commands) => {
  expect(lines(commandsForBrowser({ ...debian, ...machine }))).toEqual(commands);
});

it.each<[Partial<Machine>, string[]]>([
  [{}, [UPDATE, XVFB]],
  [{ system: 'ubuntu' }, [UPDATE, XVFB]],
  [{ isRoot: false }, []],
  [{ system: 'other' }, []],
])('installs Xvfb only as root on Debian and Ubuntu: %j', (machine, commands) => {
  expect(lines(commandsForDisplay({ ...debian, ...machine }))).toEqual(commands);
});

function lines(commands: readonly string[][]): string[] {
  return commands.map(([program, ...args]) =>
    [program === process.execPath ? 'node' : program, ...args].join(' '),
  );
}

const INSTALLS = ': > "$TEST_INSTALLED"';

/** An environment in which no browser is found, apt-get is a script, and downloads are refused. */
function machineWithoutBrowser({ user, system, script }: { user: string; system: string; script: string }) {
  const folder = mkdtempSync(join(tmpdir(), 'm-'));
  const [log, aptGet, preload] = [
    join(folder, 'log'),
    join(folder, 'apt-get'),
    'test/cli/without-browser.mjs',
  ];
  const lines = [
    '#!/bin/sh',
    '[ "$1" = --version ] && exit 0',
    `echo "$* $DEBIAN_FRONTEND" >> '${log}'`,
    script,
  ];
  writeFileSync(aptGet, `${lines.join('\n')}\n`);
  chmodSync(aptGet, 0o755);
  writeFileSync(log, '');
  return {
    ran: () => readFileSync(log, 'utf8').split('\n').filter(Boolean),
    environment: {
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
      CHROME_PATH: undefined,
      NODE_OPTIONS: `--import ./${preload}`,
      PLAYWRIGHT_BROWSERS_PATH: join(folder, 'browsers'),
      PLAYWRIGHT_DOWNLOAD_HOST: 'http://127.0.0.1:9',
      TEST_INSTALLED: join(folder, 'installed'),
      TEST_USER: user,
      TEST_SYSTEM: system,
    },
  };
}

/** An environment with a browser, and without a display; `script` is apt-get, the only program in the search path. */
function machineWithoutDisplay(script: string) {
  const machine = machineWithoutBrowser({ user: '0', system: 'debian', script });
  const { TEST_INSTALLED: installed, PATH } = machine.environment;
  writeFileSync(installed, '');
  const environment = { PATH: PATH.split(delimiter)[0]!, DISPLAY: undefined, WAYLAND_DISPLAY: undefined };
  return { ...machine, environment: { ...machine.environment, ...environment } };
}
