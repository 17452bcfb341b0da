/** Starts a local pool where the environment names no service, and runs `first | second`: two agents, one after the other, on one lease. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from 'pooled-browser/local';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };
const env = { ...process.env, ...service };

const sender = spawn(process.execPath, argumentsOf('first.ts'), {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const receiver = spawn(process.execPath, argumentsOf('second.ts'), {
  env,
  stdio: [sender.stdout, 'inherit', 'inherit'],
});
const ends = await Promise.all([once(sender, 'exit'), once(receiver, 'exit')]);
if (ends.some(([code]) => code !== 0)) process.exitCode = 1;

function argumentsOf(file: string): string[] {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return ['--import', 'tsx', path, ...process.argv.slice(2)];
}
