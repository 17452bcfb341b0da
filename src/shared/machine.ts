import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';

/** What the processes of this machine may use: of a container, its limits. */
export interface Machine {
  readonly cores: number;
  /** In bytes. */
  readonly memory: number;
}

const MEGABYTE = 1024 * 1024;
/** What this process, that of the browsers and the rest of the machine need, in bytes. */
const OTHERS = 512 * MEGABYTE;
/** What a browser with a usual page needs, in bytes. */
const BROWSER = 400 * MEGABYTE;
/** A browser between two leases that holds more bytes has lost them somewhere. */
const MOST_OF_BROWSER = 1024 * MEGABYTE;

export function thisMachine(): Machine {
  // 0, or more than there is, without a limit.
  const limit = process.constrainedMemory?.() || Number.POSITIVE_INFINITY;
  const cores = Math.min(availableParallelism(), Math.max(1, Math.floor(coresOfContainer())));
  return { cores, memory: Math.min(totalmem(), limit) };
}

/** How many browsers fit: one for each core, if there is memory for it. */
export function browsersThatFit({ cores, memory }: Machine): number {
  return Math.max(1, Math.min(cores, Math.floor((memory - OTHERS) / BROWSER)));
}

/** Bytes that each of so many browsers may hold between two leases. */
export function memoryOfEach({ memory }: Machine, browsers: number): number {
  return Math.max(BROWSER, Math.min(MOST_OF_BROWSER, (memory - OTHERS) / browsers));
}

/** The processor time that a container may use, in cores. Node 20 reports only which cores are allowed. */
function coresOfContainer(): number {
  const [quota = '', period = ''] = (
    textOfSystem('/sys/fs/cgroup/cpu.max') ||
    `${textOfSystem('/sys/fs/cgroup/cpu/cpu.cfs_quota_us')} ${textOfSystem('/sys/fs/cgroup/cpu/cpu.cfs_period_us')}`
  ).split(/\s+/);
  const cores = Number(quota) / Number(period);
  return cores > 0 ? cores : Number.POSITIVE_INFINITY;
}

/** The text of a file of the system; empty if there is none, for example because its process has ended. */
export function textOfSystem(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return '';
  }
}
