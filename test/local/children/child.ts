import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { processesOf } from '../../support/processes.js';
import { until } from '../support.js';

/** A child process that runs a local pool, with its own folder for temporary files. */
export interface Child {
  process: ChildProcess;
  folder: string;
  ended: Promise<unknown[]>;
  output: () => string;
}

/** Runs pool.mjs, and waits until its browsers have started. */
export async function startChild(way: string): Promise<Child> {
  const child = spawnChild(way);
  const hasStarted = () => child.output().includes('ready') || child.process.exitCode !== null;
  await until('the child has started', hasStarted, 240_000);
  expect(child.output()).toContain('ready');
  return child;
}

/** Runs pool.mjs without waiting. */
export function spawnChild(way: string): Child {
  const folder = mkdtempSync(join(tmpdir(), 'c-'));
  const script = fileURLToPath(new URL('pool.mjs', import.meta.url));
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [script, way], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += String(chunk)));
  return { process: child, folder, ended: once(child, 'exit'), output: () => output };
}

/** No profile is left, unless the process was killed, and no process. */
export async function expectNothingLeft({ folder, process }: Child): Promise<void> {
  if (process.signalCode !== 'SIGKILL') expect(profilesIn(folder)).toEqual([]);
  await until('every process has ended', () => processesOf(folder).length === 0);
  rmSync(folder, { recursive: true, force: true });
}

export function profilesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /pooled-browser|chromium/i.test(name));
}
