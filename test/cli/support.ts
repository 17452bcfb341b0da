import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { EXIT } from '../../src/cli/errors.js';
import { Interruption } from '../../src/cli/interruption.js';
import { createProgram } from '../../src/cli/program.js';
import { reportError } from '../../src/cli/terminal.js';
import { processesOf } from '../support/processes.js';

const MAIN = resolve('dist/cli/main.js');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface ProgramOptions {
  stdin?: 'ignore' | 'pipe';
  /** The program; Node by default. */
  command?: string;
  /** Working folder; ours by default. */
  cwd?: string;
}

type Environment = Record<string, string | undefined>;

/** For polls that include the start of a program or a browser, which takes long on a busy machine. */
export const SLOW_START = { timeout: 150_000 };

/** Minimum time between two signals, in ms: an earlier signal counts as a copy of the first. */
export const NO_ECHO = 400;

/** A running program, with its output. */
export class Program {
  readonly child: ChildProcess;
  /** The TMPDIR of this program: files in it, and processes with it, come from this program. */
  readonly folder = mkdtempSync(join(tmpdir(), 'p-'));
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  /** @param environment Added to ours; `undefined` unsets a variable. */
  constructor(
    args: readonly string[],
    environment: Environment = {},
    { stdin = 'ignore', command = process.execPath, cwd }: ProgramOptions = {},
  ) {
    const env = { ...process.env, TMPDIR: this.folder, ...environment };
    this.child = spawn(command, args, { env, cwd, stdio: [stdin, 'pipe', 'pipe'] });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    // A key may be written after the end of the program.
    this.child.stdin?.on('error', () => {});
    this.ended = once(this.child, 'close').then(([code]) => {
      return { code: code as number | null, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Waits until the output matches; otherwise fails with the output. */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    return vi.waitFor(
      () => {
        const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
        if (match) return match;
        throw new Error(`It did not print ${pattern}, but:\n${this.stdout}${this.stderr}`);
      },
      { ...SLOW_START, interval: 10 },
    );
  }

  async end(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Sends the signal until the program ends: on a busy machine, two signals may arrive as one. */
  async insist(send: () => unknown, interval = NO_ECHO): Promise<Ended> {
    const again = setInterval(send, interval);
    return this.ended.finally(() => clearInterval(again));
  }

  /** Fails when a process or a file outlives the program. A killed process ends with a delay. */
  async leavesNothing(): Promise<void> {
    await expect.poll(() => this.leftovers(), { timeout: 20_000, interval: 20 }).toEqual([]);
  }

  /** Returns its processes and the files in its TMPDIR, such as browser profiles. */
  leftovers(): string[] {
    const files = readdirSync(this.folder).filter((name) => !name.startsWith('tsx-'));
    return [...processesOf(this.folder).map(({ command }) => command), ...files];
  }
}

/** Starts the command line, or another program with `command`; it is killed at the end of the test. */
export function startCli(
  args: readonly string[],
  environment?: Environment,
  options?: ProgramOptions,
): Program {
  const whole = options?.command === undefined ? [MAIN, ...args] : args;
  const program = new Program(whole, environment, options);
  onTestFinished(() => void program.child.kill('SIGKILL'));
  return program;
}

/** Starts Node with these arguments, such as the command line of another folder. */
export function startNode(args: readonly string[], environment?: Environment): Program {
  return startCli(args, environment, { command: process.execPath });
}

/** Starts the command line as a client of a service. */
export function startClient(
  args: readonly string[],
  { baseUrl, token }: { baseUrl: string; token: string },
  options?: ProgramOptions,
): Program {
  return startCli(args, { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token }, options);
}

export async function runCli(args: readonly string[], environment?: Environment): Promise<Ended> {
  return startCli(args, environment).ended;
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
  return startClient(whole, service, { stdin: 'pipe', command: 'python3' });
}
