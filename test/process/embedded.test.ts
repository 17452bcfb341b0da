import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const program = fileURLToPath(new URL('programs/embedded.mjs', import.meta.url));

// That no browser and no profile is left is checked after every test file.
it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a process with a local pool and a lease of it dies of %s, and leaves no browser',
  async (signal) => {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([null, signal]);
  },
);

it('a process with a local pool and a lease of it exits with its own code, and leaves no browser', async () => {
  const child = spawn(process.execPath, [program, 'exit'], { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await once(child, 'exit')).toEqual([7, null]);
});
