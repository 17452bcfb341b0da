import { describe, expect, it } from 'vitest';
import { planJobs } from '../../src/cli/demo-jobs.js';
import { commandsForBrowser, commandsForDisplay, type Machine } from '../../src/cli/install-browser.js';

describe('the jobs of demo', () => {
  it.each([
    [
      ['playwright-core', 'puppeteer-core', 'chromium-bidi'],
      '3 jobs, 2 browsers: one job must wait for a browser.',
      [],
    ],
    [
      ['playwright-core', 'chromium-bidi'],
      '1 job, 1 browser',
      [
        'puppeteer cdp. To add it: npm install puppeteer-core',
        'puppeteer bidi. To add it: npm install puppeteer-core',
      ],
    ],
    [
      ['puppeteer-core', 'chromium-bidi'],
      '2 jobs, 1 browser: one job must wait for a browser.',
      ['playwright cdp. To add it: npm install playwright-core'],
    ],
  ])('runs the jobs of the installed packages: %j', (installed, headline, leftOut) => {
    const plan = planJobs((name) => installed.includes(name));
    expect(plan).toMatchObject({ headline, leftOut: leftOut.map((text) => `Left out: ${text}`) });
    expect(plan.jobs).toHaveLength(3 - leftOut.length);
  });

  it('refuses to run without any library', () => {
    expect(() => planJobs(() => false)).toThrow('npm install playwright-core, or npm install puppeteer-core');
  });
});

describe('the commands of install-browser', () => {
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

  it('installs Firefox only as root on Debian', () => {
    const FIREFOX = CHROMIUM.replace('chromium', 'firefox-esr');
    expect(lines(commandsForBrowser(debian, 'firefox'))).toEqual([UPDATE, FIREFOX]);
    expect(commandsForBrowser({ ...debian, isRoot: false }, 'firefox')).toEqual([]);
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
});
