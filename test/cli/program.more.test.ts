import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { libraries, loadedPackages, readModules } from '../structure/modules.js';
import { runCli } from './support.js';

const COMMANDS = [
  'demo',
  'serve',
  'exec',
  'map',
  'work',
  'acquire',
  'flush',
  'replays',
  'doctor',
  'install-browser',
];

it('prints its commands, examples and exit codes for --help', async () => {
  const { code, stdout, stderr } = await runCli(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?: \[command\])? {2}/gm)].map(([, name]) => name);
  expect(listed.filter((name) => name !== 'help')).toEqual(COMMANDS);
  for (const word of ['Examples:', 'Exit codes:', '130']) expect(stdout).toContain(word);
  expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
});

it.each(COMMANDS)(
  'prints options, examples and exit codes for %s --help, in narrow lines',
  async (command) => {
    const { code, stdout } = await runCli([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: pooled-browser ${command}`);
    expect(stdout).toMatch(new RegExp(`^Examples?:\\n {2}\\$ pooled-browser ${command}`, 'm'));
    expect(stdout).toContain('Exit codes:');
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
  },
);

it.each(['main', ...COMMANDS])('loads no heavy package for --help: src/cli/%s.ts', (file) => {
  const heavy = [...libraries, 'undici', 'ws', 'jose', 'p-retry'];
  expect(loadedPackages(readModules(), `src/cli/${file}.ts`, heavy)).toEqual([]);
});

it('prints the version of the package for --version', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

it('prints its help on stderr, as wrong usage, without a command', async () => {
  const { code, stdout, stderr } = await runCli([]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Usage: pooled-browser');
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
])('refuses %j with exit code 2, and the reason', async (args, message) => {
  const { code, stdout, stderr } = await runCli(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^pooled-browser: /);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('    at ');
});

it('prints the stack of an error only with --debug', async () => {
  const args = ['serve', '--executable-path', '/nowhere'];
  const plain = await runCli(args);
  expect(plain).toMatchObject({ code: 1, stdout: '' });
  expect(plain.stderr).toMatch(/^pooled-browser: .*\/nowhere/);
  expect(plain.stderr).not.toContain('    at ');
  const debugged = await runCli([...args, '--debug']);
  expect(debugged).toMatchObject({ code: 1, stdout: '' });
  expect(debugged.stderr).toContain('    at ');
});
