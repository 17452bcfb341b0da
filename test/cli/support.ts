import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { processesOf } from '../support/processes.js';

const MAIN = 'dist/cli/main.js';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A program that runs, as a person at a terminal sees it. */
export class Program {
  readonly child: ChildProcess;
  /** Its own TMPDIR: what is left in there, or runs with it, was left by this program. */
  readonly folder = mkdtempSync(join(tmpdir(), 'p-'));
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  /** @param environment Added to ours; `undefined` takes a variable away. */
  constructor(args: readonly string[], environment: Record<string, string | undefined> = {}) {
    const env = { ...process.env, TMPDIR: this.folder, ...environment };
    this.child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code]) => {
      return { code: code as number | null, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Waits until it has printed such a text; says what it has printed instead when it does not. */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    return vi.waitFor(
      () => {
        const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
        if (match) return match;
        throw new Error(`It did not print ${pattern}, but:\n${this.stdout}${this.stderr}`);
      },
      { timeout: 20_000, interval: 10 },
    );
  }

  async end(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Fails when a process or a file outlives it. What was killed needs a moment to be gone. */
  async leavesNothing(): Promise<void> {
    await expect.poll(() => this.leftovers(), { timeout: 3_000, interval: 20 }).toEqual([]);
  }

  /** Its processes, the profile folders of its browsers, and what else it keeps in its TMPDIR. */
  leftovers(): string[] {
    const files = readdirSync(this.folder).filter((name) => !name.startsWith('tsx-'));
    return [...processesOf(this.folder).map(({ command }) => command), ...files];
  }
}

export function startCli(args: readonly string[], environment?: Record<string, string | undefined>): Program {
  return new Program([MAIN, ...args], environment);
}

export async function runCli(
  args: readonly string[],
  environment?: Record<string, string | undefined>,
): Promise<Ended> {
  return startCli(args, environment).ended;
}
