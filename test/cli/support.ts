import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, vi } from 'vitest';
import { EXIT } from '../../src/cli/errors.js';
import { Interruption } from '../../src/cli/interruption.js';
import { createProgram } from '../../src/cli/program.js';
import { reportError } from '../../src/cli/report-error.js';
import {
  startProgram,
  variablesOf,
  type Ended,
  type Environment,
  type Program,
  type ProgramOptions,
} from '../support/program.js';

const MAIN = resolve('dist/cli/main.js');

/** Starts the command line. */
export function startCli(
  args: readonly string[],
  environment?: Environment,
  options?: ProgramOptions,
): Program {
  return startProgram([MAIN, ...args], environment, options);
}

/** Starts the command line as a client of a service. */
export function startClient(
  args: readonly string[],
  service: { baseUrl: string; token: string },
  options?: ProgramOptions,
): Program {
  return startCli(args, variablesOf(service), options);
}

/** Runs the command line in this process, as `main.ts` does, for a command that waits for no signal and no input. */
export async function runHere(
  args: readonly string[],
  service?: { baseUrl?: string; token?: string },
): Promise<Ended> {
  vi.stubEnv('BROWSER_POOL_BASE_URL', service?.baseUrl);
  vi.stubEnv('BROWSER_POOL_ACCESS_TOKEN', service?.token);
  const { argv } = process;
  process.argv = [process.execPath, MAIN, ...args];
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  using interruption = new Interruption();
  const program = await createProgram(args, interruption);
  const code = await program.parseAsync(args, { from: 'user' }).then(
    () => EXIT.ok,
    (error: unknown) => reportError(error, program),
  );
  for (const spy of spies) spy.mockRestore();
  process.argv = argv;
  return { code, ...written };
}

/** Makes this process look like one at a terminal, with this text on the keyboard. */
export function typeHere(text: string): void {
  const keyboard = Object.assign(new PassThrough(), { isTTY: true });
  keyboard.end(text);
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(keyboard as unknown as typeof process.stdin);
  const { isTTY } = process.stderr;
  process.stderr.isTTY = true;
  onTestFinished(() => void (process.stderr.isTTY = isTTY));
}

/** Fails unless the program refused its arguments: exit code 2, and the reason without a stack. */
export function expectRefusal({ code, stdout, stderr }: Ended, message: string): void {
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^pooled-browser: /);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('    at ');
}

/** Installs the package without its optional peers but with `others`, and returns the path of its command line. */
export function installWithoutLibraries(...others: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'i-'));
  cpSync('dist', join(folder, 'dist'), { recursive: true });
  cpSync('package.json', join(folder, 'package.json'));
  mkdirSync(join(folder, 'node_modules'));
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
  for (const name of [...Object.keys(dependencies), ...others]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', name), link);
  }
  return join(folder, 'dist/cli/main.js');
}

/**
 * Repeats an attempt to interrupt a program while the program exits with 0: on a busy machine, the signal may arrive after
 * the work.
 */
export async function interruptInTime(attempt: () => Promise<Ended>): Promise<Ended> {
  let ended = await attempt();
  for (let tries = 1; ended.code === 0 && tries < 10; tries++) ended = await attempt();
  return ended;
}

const TERMINAL = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) % 256)';

/** True on a machine that can emulate a terminal. */
export const hasTerminals = spawnSync('python3', ['-c', 'import pty']).status === 0;

/**
 * Starts the command at a terminal: `child.stdin` is the keyboard, and all output is in `stdout`.
 *
 * @param columns Width of the terminal; by default the terminal reports none.
 */
export function startAtTerminal(
  args: readonly string[],
  service: { baseUrl: string; token: string },
  columns?: number,
): Program {
  const sized = columns === undefined ? [] : ['sh', '-c', `stty cols ${columns} rows 20; exec "$@"`, 'sh'];
  const whole = ['-c', TERMINAL, ...sized, process.execPath, MAIN, ...args];
  return startProgram(whole, variablesOf(service), { stdin: 'pipe', command: 'python3' });
}
