import { readdirSync } from 'node:fs';
import { textOfSystem } from '../../shared/machine.js';

const KILOBYTE = 1024;

/**
 * The memory of a process group that no other process shares, in bytes. 0 where the system does not show it.
 *
 * @param leader Id of the process that leads the group.
 */
export function memoryOfGroup(leader: number): number {
  if (process.platform !== 'linux') return 0;
  const members = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && groupOf(name) === leader);
  return members.reduce((sum, id) => sum + privateMemoryOf(id), 0);
}

function groupOf(id: string): number {
  const stat = textOfSystem(`/proc/${id}/stat`);
  // The name of the program may contain anything. After it: state, parent, group.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)[2]);
}

function privateMemoryOf(id: string): number {
  const [, kilobytes = '0'] = /^RssAnon:\s+(\d+) kB$/m.exec(textOfSystem(`/proc/${id}/status`)) ?? [];
  return Number(kilobytes) * KILOBYTE;
}
