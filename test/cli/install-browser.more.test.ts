import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { Ended } from '../support/program.js';
import { runHere, startCli } from './support.js';

it('prints the path of an installed browser, as JSON with --json', async () => {
  const { code, stdout, stderr } = await runHere(['install-browser']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, path] = /^Browser: (.+)\n$/.exec(stdout)!;
  expect(existsSync(path!)).toBe(true);
  const json = await runHere(['install-browser', '--json']);
  expect(JSON.parse(json.stdout)).toEqual({ executablePath: path, installed: false });
});

it('refuses to install anything while CHROME_PATH is wrong', async () => {
  vi.stubEnv('CHROME_PATH', '/nowhere');
  const { code, stdout, stderr } = await runHere(['install-browser']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('CHROME_PATH is /nowhere');
});

const INSTALLS = ': > "$TEST_INSTALLED"';
const UPDATE = 'update noninteractive';
const APT = 'apt-get install -y --no-install-recommends';

describe.runIf(process.platform === 'linux')('on a machine without a browser', () => {
  it.each<
    [string, { script?: string; user?: string; ran?: string[] }, Pick<Ended, 'code'>, (string | RegExp)[]]
  >([
    [
      'prints its commands, runs them, and checks that the browser starts',
      { ran: [UPDATE, 'install -y --no-install-recommends chromium noninteractive'] },
      { code: 0 },
      ['No Chrome or Chromium was found.', '$ apt-get update\n', `$ ${APT} chromium\n`],
    ],
    [
      'continues when apt-get update fails',
      { script: `case "$1" in update) exit 100;; *) ${INSTALLS};; esac` },
      { code: 0 },
      ['$ apt-get update\napt-get update exited with 100. Continuing.'],
    ],
    [
      'fails with the failed command, and what to do',
      { script: 'echo "E: no such package"; exit 100' },
      { code: 1 },
      ['E: no such package', `${APT} chromium exited with 100.`, 'CHROME_PATH'],
    ],
    [
      'never calls sudo: without root, it downloads and prints the command for root',
      { user: '1000', ran: [] },
      { code: 1 },
      [/\$ .*playwright-core.*cli\.js install chromium\n/, `sudo apt-get update && sudo ${APT} chromium`],
    ],
  ])('%s', async (_what, { script = INSTALLS, user, ran }, { code }, messages) => {
    const machine = machineWithoutBrowser(script, user);
    const ended = await startCli(['install-browser', '--yes'], machine.environment).ended;
    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(code === 0 ? /^Browser: .*chrom.* \(installed now\)\n$/ : /^$/);
    for (const text of messages) expect(ended.stderr).toMatch(text);
    if (ran) expect(machine.ran()).toEqual(ran);
  });
});

it.runIf(process.platform === 'linux')(
  'installs no package of the system without a yes, and shows what it would run',
  async () => {
    const machine = machineWithoutBrowser(INSTALLS);
    const { code, stdout, stderr } = await startCli(['install-browser'], machine.environment).ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`apt-get update, then ${APT} chromium? To answer yes, pass --yes.`);
    expect(machine.ran()).toEqual([]);
  },
);

describe.runIf(process.platform === 'linux')('--headful, on a machine without a display', () => {
  it('installs Xvfb', async () => {
    const machine = machineWithoutDisplay('/bin/cp "$0" "${0%/*}/Xvfb"');
    const args = ['install-browser', '--headful', '--json', '--yes'];
    const { code, stdout, stderr } = await startCli(args, machine.environment).ended;
    expect(JSON.parse(stdout)).toMatchObject({ installed: false, opensWindows: true });
    expect(stderr).toContain('This machine has no display.');
    expect(machine.ran()).toEqual([UPDATE, 'install -y --no-install-recommends xvfb noninteractive']);
    expect(code).toBe(0);
  });

  it('prints what is missing when that fails, and succeeds: headless browsers need no display', async () => {
    const machine = machineWithoutDisplay('exit 100');
    const { code, stdout, stderr } = await startCli(
      ['install-browser', '--headful', '--yes'],
      machine.environment,
    ).ended;
    expect(stdout).toMatch(/^Browser: /);
    expect(stderr).toContain('Xvfb is missing. For pools with headless: false, install it: apt-get install');
    expect(code).toBe(0);
  });
});

/** An environment of Debian in which no browser is found, apt-get is a script, and downloads are refused. */
function machineWithoutBrowser(script: string, user = '0') {
  const folder = mkdtempSync(join(tmpdir(), 'm-'));
  const [log, aptGet] = [join(folder, 'log'), join(folder, 'apt-get')];
  const logging = `echo "$* $DEBIAN_FRONTEND" >> '${log}'`;
  writeFileSync(aptGet, `#!/bin/sh\n[ "$1" = --version ] && exit 0\n${logging}\n${script}\n`);
  chmodSync(aptGet, 0o755);
  writeFileSync(log, '');
  return {
    ran: () => readFileSync(log, 'utf8').split('\n').filter(Boolean),
    environment: {
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
      CHROME_PATH: undefined,
      NODE_OPTIONS: '--import ./test/cli/without-browser.mjs',
      PLAYWRIGHT_BROWSERS_PATH: join(folder, 'browsers'),
      PLAYWRIGHT_DOWNLOAD_HOST: 'http://127.0.0.1:9',
      TEST_INSTALLED: join(folder, 'installed'),
      TEST_USER: user,
      TEST_SYSTEM: 'debian',
    },
  };
}

/** An environment with a browser, and without a display; `script` is apt-get, the only program in the search path. */
function machineWithoutDisplay(script: string) {
  const machine = machineWithoutBrowser(script);
  const { TEST_INSTALLED: installed, PATH } = machine.environment;
  writeFileSync(installed, '');
  const environment = { PATH: PATH.split(delimiter)[0]!, DISPLAY: undefined, WAYLAND_DISPLAY: undefined };
  return { ...machine, environment: { ...machine.environment, ...environment } };
}
