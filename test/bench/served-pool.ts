import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** A local pool in a process of its own, so that what is measured here is the client. */
export interface ServedPool extends AsyncDisposable {
  service: { baseUrl: string; token: string };
  pid: number;
}

/** Serves one pool, `bench`, of so many browsers. Wants `dist/`. */
export async function servePool(size = 1): Promise<ServedPool> {
  const { BROWSER_POOL_ACCESS_TOKEN: _token, ...env } = process.env;
  const child = spawn(process.execPath, [CLI, 'serve', '--json', '--pool', `bench=${size}`], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  lines.on('line', () => {});
  const { baseUrl, token } = JSON.parse(line) as { baseUrl: string; token: string };
  return {
    service: { baseUrl, token },
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}
