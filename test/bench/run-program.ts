import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Service } from './bench.js';

export interface ProgramEnd {
  /** Exit code, or the signal that ended the process. */
  ended: number | NodeJS.Signals | null;
  /** When the end began, by `performance.now()`. */
  began: number;
}

/** Runs a program that leases a browser, ends it in the given way once it has printed `when`, and waits for its end. */
export async function runProgram(
  path: string,
  { baseUrl, token }: Service,
  { argument, signal, when = 'leased' }: { argument: string; signal?: NodeJS.Signals; when?: string },
): Promise<ProgramEnd> {
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const child = spawn(process.execPath, [path, argument], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([printed(child, when), exited]);
  const began = performance.now();
  if (signal) child.kill(signal);
  const [code, endSignal] = await exited;
  return { ended: code ?? endSignal, began };
}

async function printed(child: ChildProcess, text: string): Promise<void> {
  let output = '';
  for await (const chunk of child.stdout!.iterator({ destroyOnReturn: false })) {
    output += String(chunk);
    if (output.includes(text)) return;
  }
}
