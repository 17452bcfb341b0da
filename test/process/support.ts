import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFailed } from 'vitest';
import { processesOf, type RunningProcess } from '../support/processes.js';
import { startProgram, type Environment, type Program } from '../support/program.js';

/** Starts a file of the folder `programs`, with the TMPDIR of the test file: the leak check finds what it leaves. */
export function start(name: string, args: readonly string[], environment?: Environment): Program {
  const path = programPath(name);
  const variables = { TMPDIR: process.env['TMPDIR'], ...environment };
  const program = startProgram([path, ...args], variables, { stdin: 'pipe' });
  onTestFailed(() => console.error(program.stderr));
  return program;
}

export function programPath(name: string, extension = 'mjs'): string {
  return fileURLToPath(new URL(`programs/${name}.${extension}`, import.meta.url));
}

/** The processes of this test file that release browsers. */
export function helpers(): RunningProcess[] {
  const all = processesOf(process.env['TMPDIR']!);
  return all.filter(({ command }) => command.includes('release-process'));
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
