import { spawn } from 'node:child_process';

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** In ms. */
  readonly timeout?: number;
}

/** Runs a command. Resolves to its exit code, null after a signal or the timeout, and its output. */
export function run(
  [file, ...args]: readonly string[],
  { timeout = 180_000, ...options }: RunOptions = {},
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file!, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
    const timer = setTimeout(() => {
      output += `\nended after ${timeout} ms\n`;
      // Also what it has started.
      process.kill(-child.pid!, 'SIGKILL');
    }, timeout);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}
