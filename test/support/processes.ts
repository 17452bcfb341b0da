import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export interface RunningProcess {
  pid: number;
  command: string;
}

/** The variables with which a process started, on Linux; else nothing. */
export function variablesOfProcess({ pid }: RunningProcess): string {
  return readProc(String(pid), 'environ');
}

/**
 * Processes that were started with `folder` as their TMPDIR or that name it in their arguments. A browser whose parent
 * has ended is no longer a child of any test, but its arguments contain the path of its profile.
 */
export function processesOf(folder: string): RunningProcess[] {
  const found = existsSync('/proc/self/environ') ? fromProc(folder) : fromPs(folder);
  return found.filter(({ pid }) => pid !== process.pid);
}

export function kill({ pid }: RunningProcess): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended meanwhile.
  }
}

function fromProc(folder: string): RunningProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const command = readProc(pid, 'cmdline').trim();
    const started = command !== '' && readProc(pid, 'environ').includes(`TMPDIR=${folder}`);
    return started || command.includes(folder) ? [{ pid: Number(pid), command }] : [];
  });
}

/** Returns an empty string for a process that has ended, is a zombie, or belongs to another user. */
function readProc(pid: string, file: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function fromPs(folder: string): RunningProcess[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  return lines
    .filter((line) => line.includes(folder))
    .map((line) => ({ pid: Number.parseInt(line, 10), command: line.trim().replace(/^\d+\s+/, '') }));
}
