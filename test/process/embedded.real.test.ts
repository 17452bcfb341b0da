import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { useWholeBrowser } from '../support/whole-browser.js';

useWholeBrowser();

const program = fileURLToPath(new URL('programs/embedded.mjs', import.meta.url));

// A hook after each test file checks that no browser and no profile folder is left.
it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a process with a local pool and a lease ends by %s and leaves no browser',
  async (signal) => {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([null, signal]);
  },
);

it('a process with a local pool and a lease keeps its exit code and leaves no browser', async () => {
  const child = spawn(process.execPath, [program, 'exit'], { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await once(child, 'exit')).toEqual([7, null]);
});

it('removes a profile to which other processes write while it is removed', async () => {
  const child = spawn(process.execPath, [program, 'late-files'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
});
