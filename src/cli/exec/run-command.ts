import { spawn, type ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';
import { EXIT, exitCodeOf } from '../exit-codes.js';
import type { Divert } from '../interruptible.js';
import { note } from '../note.js';

/** Runs a command on our terminal, passes signals on to it, and resolves to its exit code, as a shell tells it. */
export async function runCommand(
  [command, ...args]: readonly string[],
  environment: NodeJS.ProcessEnv,
  divert: Divert,
): Promise<number> {
  const child = spawn(command!, args, { stdio: 'inherit', env: { ...process.env, ...environment } });
  let signals = 0;
  const passOn = (signal: NodeJS.Signals) => {
    signals++;
    if (signals > 1) child.kill('SIGKILL');
    // Ctrl-C at a terminal goes to all programs there: the command has it already.
    else if (signal !== 'SIGINT' || !hasTerminal()) child.kill(signal);
  };
  return divert(passOn, () => ended(child, command!));
}

function ended(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? exitCodeOf(signal) : code!));
    child.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      // One that runs can fail to be signalled; its exit is still to come.
      if (child.pid !== undefined) return;
      const isMissing = code === 'ENOENT';
      note(`${command}: ${isMissing ? 'there is no such command' : `it could not be started (${message})`}.`);
      resolve(isMissing ? EXIT.notFound : EXIT.notStarted);
    });
  });
}

function hasTerminal(): boolean {
  return [0, 1, 2].some((descriptor) => isatty(descriptor));
}
