import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { FakeService } from '../support/fake-service.js';
import { expectRefusal, runHere } from './support.js';

const COMMANDS =
  'demo serve exec proxy mcp map work acquire flush leases replays doctor install-browser skills completion'.split(
    ' ',
  );

const PASSWORD = 'canary-password-123';

it('prints its commands, examples and exit codes for --help', async () => {
  const { code, stdout, stderr } = await runHere(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?: \[command\])? {2}/gm)].map(([, name]) => name);
  expect(listed.filter((name) => name !== 'help')).toEqual(COMMANDS);
  for (const word of ['Examples:', 'Exit codes:', '130']) expect(stdout).toContain(word);
  expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
});

it.each(COMMANDS)(
  'prints options, examples and exit codes for %s --help, in narrow lines',
  async (command) => {
    const { code, stdout } = await runHere([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: pooled-browser ${command}`);
    expect(stdout).toMatch(new RegExp(`^Examples?:\\n {2}\\$ pooled-browser ${command}`, 'm'));
    expect(stdout).toContain('Exit codes:');
    expect(stdout.includes('126')).toBe(command === 'exec');
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
  },
);

/** The flags of each command that leases browsers. Others are of the commands whose leases have a connection. */
const OF_A_LEASE =
  'service base-url tag start-url headful acquire-timeout unreachable-timeout lifetime release release-on-crash record replays';
const OF_A_CONNECTION = `${OF_A_LEASE} expose-network allow-hosts`;

it.each([
  ['exec', `${OF_A_CONNECTION} name`],
  ['proxy', `${OF_A_CONNECTION} name idle-timeout max`],
  ['mcp', `${OF_A_CONNECTION} idle-timeout max`],
  ['map', `${OF_A_CONNECTION} name idle-timeout task-timeout`],
  ['work', `${OF_A_CONNECTION} name idle-timeout task-timeout`],
  ['acquire', `${OF_A_LEASE} name`],
])('has the same flags for the same things: %s', async (command, flags) => {
  const { stdout } = await runHere([command, '--help']);
  for (const flag of flags.split(' ')) expect(stdout).toMatch(new RegExp(`^  --${flag} `, 'm'));
});

it('prints the version of the package for --version', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await runHere(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

it.each([
  [['serv'], "unknown command 'serv'"],
  [['demo', '--fast'], "unknown option '--fast'"],
  [['demo', 'now'], 'too many arguments'],
  [['serve', '--port', 'http'], 'The value must be a whole number, 0 to 65535.'],
  [['serve', '--size', '0'], 'The value must be a whole number, 1 or more.'],
  [['serve', '--timeout-seconds', '-1'], 'The value must be a number above 0.'],
  [['serve', '--pool', 'a b'], 'The name must have 1 to 255 characters'],
  [['serve', '--pool', 'a=none'], 'The value must be a whole number, 1 or more.'],
  [['serve', '--pool', 'a', '--pool', 'a'], 'Two pools have the name or id a.'],
  [['serve', '--start-url', 'nowhere'], '--start-url'],
  [['serve', '--viewport', 'big'], 'The size must be a width and a height in pixels, such as 1280x720.'],
  [['acquire'], "missing required argument 'pool'"],
  [['acquire', 'a/b'], 'pool must not contain a slash'],
  [['acquire', 'pool', '--name', 'two words'], '--name must be a string of 1 to 255 letters'],
  [['acquire', 'pool', '--tag', 'novalue'], 'The value must be key=value.'],
  [['acquire', 'pool', '--tag', 'a=1', '--tag', 'a=2'], 'The key a is given twice.'],
  [['acquire', 'pool', '--start-url', 'nowhere'], 'must be an absolute URL'],
  [['acquire', 'pool', '--acquire-timeout', '30'], 'such as 500ms, 30s or 5m'],
  [['acquire', 'pool', '--acquire-timeout', '0s'], 'such as 500ms, 30s or 5m'],
  [['acquire', 'pool', '--release', 'leave'], 'Allowed choices are auto, reuse, destroy.'],
  [['acquire', 'pool', '--token', 'abc'], "unknown option '--token'"],
  [['acquire', 'pool', '--acquire-timeot', '3s'], '(Did you mean --acquire-timeout?) For help'],
  [['acquire', 'pool', '--base-url', 'localhost:4411'], 'Did you mean http://localhost:4411?'],
  [['exec', 'pool'], "missing required argument 'command'"],
  [['exec', 'pool', '--idle-timeout', '5s', '--', 'true'], '--idle-timeout needs --lazy.'],
  [['exec', 'pool', '--lifetime', '5', '--', 'true'], 'a time above 0 with its unit'],
  [['proxy', 'pool', '--lifetime', '0'], 'a time above 0 with its unit'],
  [['proxy', 'pool', '--idle-timeout', '-1s'], 'a time above 0 with its unit'],
  [['proxy', 'pool', '--keep', '0'], 'a time above 0 with its unit'],
  [['proxy', 'pool', '--max-lifetime', '2h'], '--max-lifetime limits extend, which needs'],
  [['exec', 'pool', '--playwright', '--lazy', '--', 'ls'], "cannot be used with option '--lazy'"],
  [['exec', 'pool', 'ls', '-l'], "unknown option '-l'"],
  [['exec', 'pool', '--replays', 'all', '--', 'ls'], 'Allowed choices are list, record, off.'],
  [['flush', 'a', 'b', '--yes'], 'too many arguments'],
  [['flush', '..', '--yes'], 'pool must not be a relative path'],
  [['replays', 'a%2fb'], 'sessionId must not contain a slash'],
  [['doctor', 'pool', '--acquire-timeout', 'soon'], 'such as 500ms, 30s or 5m'],
  [['work', 'pool', 'test/cli/task.mjs', '--queue', 'q'], 'The address of Redis is missing: set REDIS_URL'],
  [
    ['work', 'pool', 'test/cli/task.mjs', '--queue', 'q', '--redis', `redis://:${PASSWORD}@127.0.0.1:2`],
    '--redis must not contain a password',
  ],
])('refuses %j with exit code 2 and the reason, before anything is sent', async (args, message) => {
  await using service = await FakeService.start();
  const ended = await runHere(args, service.options);
  expectRefusal(ended, message);
  expect(ended.stderr).not.toContain(PASSWORD);
  expect(service.requests).toEqual([]);
});

const help = (...command: string[]) =>
  ` For help, run: ${['pooled-browser', ...command, '--help'].join(' ')}`;
const withoutPool = (first: string, command: string) =>
  `missing required argument 'pool'. Put its name before the ${first}, or set BROWSER_POOL.${help(command)}`;
const SEPARATOR =
  ' Put -- before the command, so that its options are not read as options of exec: pooled-browser exec POOL -- COMMAND.';

it.each([
  [['exec', 'scrapers', 'node', '-e', '1'], `unknown option '-e'.${SEPARATOR}${help('exec')}`],
  [['exec', 'scrapers', '-e', '--', 'node'], `unknown option '-e'.${help('exec')}`],
  [
    ['exec', 'scrapers', '--relase', 'reuse', 'node'],
    `unknown option '--relase' (Did you mean --release?)${help('exec')}`,
  ],
  [['flush', '--yse', 'a'], `unknown option '--yse' (Did you mean --yes?)${help('flush')}`],
  [
    ['map', 'pool', 'a.mjs', '--size', '3'],
    `unknown option '--size'. The command serve has it.${help('map')}`,
  ],
  [
    ['serve', '--record=failures'],
    `unknown option '--record'. The commands exec, proxy, mcp, map, work and acquire have it.${help('serve')}`,
  ],
  [
    ['exec', 'pool', 'ls', '--retries', '1'],
    `unknown option '--retries'.${SEPARATOR} The command map has it.${help('exec')}`,
  ],
  [['exec', 'pool', '--idle-timeout', '5s', '--', 'ls'], `--idle-timeout needs --lazy.${help('exec')}`],
  [['flush'], `missing required argument 'pool'.${help('flush')}`],
  [['exec'], `missing required argument 'pool'.${help('exec')}`],
  [['exec', 'pool'], `missing required argument 'command'.${help('exec')}`],
  [['exec', '--', 'true'], withoutPool('command', 'exec')],
  // Otherwise, npm would be the pool, and test the command.
  [['exec', '--', 'npm', 'test'], withoutPool('command', 'exec')],
  [['map', 'test/cli/task.mjs', 'LICENSE'], withoutPool('script', 'map')],
  [['work', 'test/cli/task.mjs', '--queue', 'q'], withoutPool('script', 'work')],
  [['flsh'], `unknown command 'flsh' (Did you mean flush?)${help()}`],
])('explains the wrong usage %j on one line, in whole sentences', async (args, message) => {
  const { code, stderr } = await runHere(args);
  expect({ code, stderr }).toStrictEqual({ code: 2, stderr: `pooled-browser: ${message}\n` });
});

it.each([
  [['flush', '--yes'], 'mine'],
  [['flush', 'other', '--yes'], 'other'],
  [['exec', '--', 'true'], 'mine'],
  [['exec', 'other', '--', 'true'], 'other'],
  [['exec', 'other', 'true'], 'other'],
  [['map', 'test/cli/task.mjs', 'LICENSE'], 'mine'],
  [['map', 'other', 'test/cli/task.mjs', 'LICENSE'], 'other'],
])('takes the pool of %j from BROWSER_POOL, unless an argument names it', async (args, pool) => {
  vi.stubEnv('BROWSER_POOL', 'mine');
  await using service = await FakeService.start();
  service.script('acquire', { status: 403 });
  await runHere(args, service.options);
  expect([...new Set(service.requests.map(({ path }) => path.split('/')[2]))]).toEqual([pool]);
});
