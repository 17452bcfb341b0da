import type { ChildProcess } from 'node:child_process';
import { environment } from '../shared/environment.js';
import { RELEASE_PROCESS, type ReleaseTicket } from './release-ticket.js';

/**
 * A small process that outlives this one, should it be killed without a word (SIGKILL, out of memory), and then gives
 * back what it held. It runs only while something is watched, and keeps nobody alive.
 */
let watcher: ChildProcess | undefined;
let watched = 0;

/** Has the watcher release this lease, should this process die first. The returned function calls it off. */
export function watchLease(ticket: ReleaseTicket): () => void {
  watcher ??= startWatcher();
  watched++;
  write({ hold: ticket });
  return () => {
    write({ drop: ticket.body.session_id });
    if (--watched > 0) return;
    watcher?.stdin?.end();
    watcher = undefined;
  };
}

function startWatcher(): ChildProcess {
  const { spawn } = process.getBuiltinModule('node:child_process');
  // In a session of its own: Ctrl-C at the terminal is for this process, not for its watcher.
  const child = spawn(process.execPath, [RELEASE_PROCESS], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: environment.forChild(),
  });
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  // A watcher that could not start, or died, takes nothing with it.
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  return child;
}

/** Through the pipe, never argv: everyone on the machine can read a process's arguments. */
function write(message: object): void {
  watcher?.stdin?.write(`${JSON.stringify(message)}\n`);
}
