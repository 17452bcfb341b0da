import { readdirSync, readFileSync } from 'node:fs';

const KILOBYTE = 1024;

/**
 * The memory of some process groups that no other process shares, in bytes. Empty where the system does not show it.
 *
 * @param leaders Ids of the processes that lead the groups.
 */
export function memoryOfGroups(leaders: ReadonlySet<number>): ReadonlyMap<number, number> {
  const memory = new Map<number, number>();
  if (process.platform !== 'linux') return memory;
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const group = groupOf(name);
    if (!leaders.has(group)) continue;
    memory.set(group, (memory.get(group) ?? 0) + privateMemoryOf(name));
  }
  return memory;
}

function groupOf(id: string): number {
  const stat = textOf(`/proc/${id}/stat`);
  // The name of the program may contain anything. After it: state, parent, group.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)[2]);
}

function privateMemoryOf(id: string): number {
  const [, kilobytes = '0'] = /^RssAnon:\s+(\d+) kB$/m.exec(textOf(`/proc/${id}/status`)) ?? [];
  return Number(kilobytes) * KILOBYTE;
}

/** Empty if the process has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
