/** Runs Python programs with a leased browser: one through `pooled-browser exec`, others at the address of a proxy. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BrowserPool, serveProxy } from 'pooled-browser';
import { startLocalPool } from 'pooled-browser/local';

const url = process.argv[2] ?? 'data:text/html,<title>Hello from Python</title>';

if (succeeds('python3', '--version')) await runPython();
else console.log('Skipped: there is no python3 on this machine.');

async function runPython(): Promise<void> {
  // Uses the service that the environment names, or else starts a local pool.
  await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
  const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };
  // npx pooled-browser exec default -- python3 title.py
  const exec = [pathOf('../../dist/cli/main.js'), 'exec', 'default', '--'];
  await run([process.execPath, ...exec, 'python3', pathOf('title.py'), url], service);

  // npx pooled-browser proxy default
  await using pool = new BrowserPool('default', { baseUrl: local?.baseUrl, token: local?.token });
  await using proxy = await serveProxy(pool);
  // pip install playwright
  const hasPlaywright = succeeds('python3', '-c', 'import playwright');
  const address = { BROWSER_POOL_CDP_WS_URL: proxy.url.replace('http', 'ws') };
  if (hasPlaywright) await run(['python3', pathOf('agent.py'), url, proxy.url]);
  else await run(['python3', pathOf('title.py'), url], address);
  if (succeeds('python3', '-c', 'import websockets'))
    await run(['python3', pathOf('client.py'), url, `${proxy.url}/alice`]);
  else console.log('Skipped client.py: Python has no package websockets (pip install websockets).');
}

async function run([command, ...args]: string[], env?: Record<string, string>): Promise<void> {
  const child = spawn(command!, args, { env: { ...process.env, ...env }, stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) process.exitCode = 1;
}

function succeeds(command: string, ...args: string[]): boolean {
  return spawnSync(command, args).status === 0;
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
