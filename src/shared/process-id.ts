import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process, for others that look for it later, perhaps from another container or machine. */
export interface ProcessId {
  readonly pid: number;
  readonly host: string;
  /** Where the id of the process has its meaning, and when the process started. Known on Linux. */
  readonly system?: string | undefined;
  readonly started?: string | undefined;
}

export function thisProcess(): ProcessId {
  const { pid } = process;
  return { pid, host: hostname(), system: systemId(), started: startOf(pid) };
}

/** Returns undefined if this process can't find out, such as for a process of another machine. */
export function hasEnded({ pid, host, system, started }: ProcessId): boolean | undefined {
  if (host !== hostname() || system !== systemId()) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? true : undefined;
  }
  const found = startOf(pid);
  return started && found ? started !== found : undefined;
}

/** The run of the kernel and the namespace in which a process id has its meaning: containers may share a host name. */
function systemId(): string | undefined {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return undefined;
  }
}

/** When a process started, which distinguishes processes with the same id. A zombie has ended. */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in brackets, may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? 'zombie' : fields[19];
  } catch {
    return undefined;
  }
}
