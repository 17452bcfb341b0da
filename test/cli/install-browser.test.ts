import { expect, it } from 'vitest';
import { commandsForBrowser, commandsForDisplay, type Machine } from '../../src/cli/install-browser.js';

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
  return commands.map((words) => words.join(' ').replace(process.execPath, 'node'));
}
