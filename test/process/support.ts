import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFailed, onTestFinished } from 'vitest';

export interface Program {
  child: ChildProcess;
  /** The text on stdout so far. */
  output: () => string;
  /** Waits for a text on stdout. */
  says: (text: string) => Promise<void>;
  /** Its exit code and the signal that ended it. */
  ended: Promise<[number | null, NodeJS.Signals | null]>;
}

/** Starts a file of the folder `programs`. It is killed after the test. */
export function start(
  name: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Program {
  const path = fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url));
  const env = { ...process.env, ...environment };
  const child = spawn(process.execPath, [path, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let [output, errors] = ['', ''];
  child.stderr.on('data', (text) => (errors += String(text)));
  onTestFailed(() => console.error(errors));
  child.stdout.on('data', (text) => (output += String(text)));
  return {
    child,
    output: () => output,
    says: async (text) => {
      await expect.poll(() => output).toContain(text);
    },
    ended: once(child, 'close') as Program['ended'],
  };
}

/** The process that releases the browsers of a program after its end. */
export function guardOf({ child: { pid } }: Program): { pid: string; args: string; isOver: () => boolean } {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const argsOf = (child: string) => readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' ');
  const guard = pids.find((child) => argsOf(child).includes('release-process'))!;
  return { pid: guard, args: argsOf(guard), isOver: () => isOver(guard) };
}

function isOver(pid: string): boolean {
  try {
    // A process that its parent has not reaped is a zombie.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}
