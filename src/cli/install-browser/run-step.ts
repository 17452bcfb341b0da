import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Step } from './plan.js';

/** Says what it runs, runs it, and shows its output as it comes: on stderr, for stdout is for the result. */
export async function runStep({ command, args, limit, optional }: Step, signal: AbortSignal): Promise<void> {
  const line = [command, ...args].join(' ');
  process.stderr.write(`$ ${line}\n`);
  const child = spawn(command, args, {
    stdio: ['ignore', process.stderr, process.stderr],
    // Nobody is there to answer the questions of packages.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: limit,
    signal,
  });
  const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (code === 0) return;
  const failure =
    code === null ? `was ended by ${by} (its limit is ${limit / 60_000} minutes)` : `ended with ${code}`;
  if (!optional) throw new Error(`${line} ${failure}.`);
  process.stderr.write(`It ${failure}; going on.\n`);
}
