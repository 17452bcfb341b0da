import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, vi } from 'vitest';
import { describeHandles, newIn, openHandles } from './open-handles.js';
import { kill, processesOf } from './processes.js';
import { endFile, folder } from './worker.js';

/**
 * Setup of every test file: fails the file when a process, a profile folder, a server or a socket survives it. The
 * TMPDIR of its worker identifies what it left.
 */

/** Milliseconds until processes have ended and removed their profile folders: a busy machine needs long for a browser. */
const PROCESS_GRACE = Number(process.env['LEAK_GRACE'] ?? 60_000);
/** Milliseconds until sockets and servers have really closed after that. */
const HANDLE_GRACE = 3_000;
/** Fewest looks until then, because a blocked event loop does not read that a socket has ended. */
const FEWEST_LOOKS = 40;

// The next file of this worker begins with the same variables.
const variables = { ...process.env };
// A test must never reach a real service, or a proxy, that the shell's environment names.
for (const name of Object.keys(process.env))
  if (/^BROWSER_POOL_|_proxy$/i.test(name)) delete process.env[name];

const handlesBefore = openHandles();

afterAll(async () => {
  vi.useRealTimers();
  await endFile();
  const leaks = [
    ...(await waitForNone(leftFromProcesses, PROCESS_GRACE)),
    ...(await waitForNone(newHandles, HANDLE_GRACE)),
  ];
  clean();
  if (leaks.length > 0)
    throw new Error(`This test file left behind:\n${leaks.map((leak) => `- ${leak}`).join('\n')}`);
}, PROCESS_GRACE + 120_000);

async function waitForNone(find: () => string[], grace: number): Promise<string[]> {
  const began = performance.now();
  for (let look = 1; ; look++) {
    const leaks = find();
    const elapsed = performance.now() - began;
    if (leaks.length === 0 || (elapsed > grace && look > FEWEST_LOOKS)) return leaks;
    // Each look at the processes reads all of /proc.
    await sleep(elapsed < 1000 ? 25 : 250);
  }
}

function leftFromProcesses(): string[] {
  const processes = processesOf(folder).map(({ pid, command }) => `process ${pid}: ${command.slice(0, 300)}`);
  const profiles = readdirSync(folder)
    .filter((name) => name.startsWith('pooled-browser-'))
    .map((name) => `profile folder ${name}`);
  return [...processes, ...profiles];
}

function newHandles(): string[] {
  const fresh = newIn(openHandles(), handlesBefore);
  return fresh.length === 0 ? [] : [`${fresh.join(', ')} (${describeHandles()})`];
}

/** Ends leaked processes and removes leaked files after the report. */
function clean(): void {
  processesOf(folder).forEach(kill);
  for (const name of readdirSync(folder))
    rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
  Object.assign(process.env, variables);
}
