import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export interface RunningProcess {
  pid: number;
  command: string;
}

/**
 * Processes that were started with `folder` as their TMPDIR or that name it in their arguments.
 * A browser whose parent died belongs to nobody's children any more, but still carries its profile's path.
 */
export function processesOf(folder: string): RunningProcess[] {
  const found = existsSync('/proc/self/environ') ? fromProc(folder) : fromPs(folder);
  return found.filter(({ pid }) => pid !== process.pid);
}

export function kill({ pid }: RunningProcess): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone by itself meanwhile.
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

/** Empty for a process that is gone, is a zombie, or belongs to another user. */
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
