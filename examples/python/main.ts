/** Starts a local pool where the environment names no service, and runs title.py with a leased browser through `pooled-browser exec`. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from 'pooled-browser/local';

if (spawnSync('python3', ['--version']).status === 0) await runPython();
else console.log('Skipped: there is no python3 on this machine.');

async function runPython(): Promise<void> {
  // Uses the service that the environment names, or else starts a local pool.
  await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
  const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };

  // npx pooled-browser exec default -- python3 title.py
  const command = [pathOf('../../dist/cli/main.js'), 'exec', 'default', '--', 'python3', pathOf('title.py')];
  const child = spawn(process.execPath, [...command, ...process.argv.slice(2)], {
    env: { ...process.env, ...service },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) process.exitCode = 1;
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
