import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { until } from '../support.js';

/** A child process that runs a local pool. */
export interface Child {
  process: ChildProcess;
  folder: string;
  ended: Promise<unknown[]>;
  output: () => string;
  expectNothingLeft: () => Promise<void>;
}

/** Runs pool.ts with its own folder for temporary files, and waits until its browsers have started. */
export async function startChild(way: string): Promise<Child> {
  const child = spawnChild(way);
  const { process: started } = child;
  const hasStarted = () => child.output().includes('ready') || started.exitCode !== null;
  await until('the child has started', hasStarted, 240_000);
  return child;
}

/** Runs pool.ts without waiting. */
export function spawnChild(way: string): Child {
  const folder = mkdtempSync(join(tmpdir(), 'c-'));
  const script = fileURLToPath(new URL('pool.ts', import.meta.url));
  const env = { ...process.env, TMPDIR: folder, TSX_DISABLE_CACHE: '1' };
  const child = spawn(process.execPath, ['--import', 'tsx', script, way], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += String(chunk)));
  return {
    process: child,
    folder,
    ended: once(child, 'exit'),
    output: () => output,
    expectNothingLeft: async () => {
      expect(output).toContain('ready');
      expect(profilesIn(folder)).toEqual([]);
      await until('every process has ended', () => browsersBelow(folder).length === 0, 20_000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function profilesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /pooled-browser|chromium/i.test(name));
}

/** Ids of the processes whose command line or environment contains a profile in this folder. */
export function browsersBelow(folder: string): string[] {
  const below = join(folder, 'pooled-browser-');
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && readProcess(pid).includes(below));
}

function readProcess(pid: string): string {
  try {
    return ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8')).join('\0');
  } catch {
    return '';
  }
}
