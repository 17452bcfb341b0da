import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { processesOf } from './processes.js';

/** Minimum time between two signals, in ms: an earlier signal counts as a copy of the first. */
const NO_ECHO = 400;

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

export type Environment = Record<string, string | undefined>;

/** For polls that include the start of a program or a browser, which takes long on a busy machine. */
export const SLOW_START = { timeout: 150_000 };

/** A running program, with its output. */
export class Program {
  readonly child: ChildProcess;
  /** The TMPDIR of this program: files in it, and processes with it, come from this program. */
  readonly folder = mkdtempSync(join(tmpdir(), 'p-'));
  readonly ended: Promise<Ended>;
  /** Its exit code, and the signal that ended it. */
  readonly exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
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
    this.exit = once(this.child, 'close') as Program['exit'];
    this.ended = this.exit.then(([code]) => ({ code, stdout: this.stdout, stderr: this.stderr }));
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

/** Starts a program that is killed at the end of the test. */
export function startProgram(
  args: readonly string[],
  environment?: Environment,
  options?: ProgramOptions,
): Program {
  const program = new Program(args, environment, options);
  onTestFinished(() => void program.child.kill('SIGKILL'));
  return program;
}

/** The variables that name a service. */
export function variablesOf({ baseUrl, token }: { baseUrl: string; token: string }): Environment {
  return { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
}
