import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { processesOf } from './processes.js';

// Each test starts another vitest, all at the same time.
vi.setConfig({ testTimeout: 180_000 });

const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs');

it.concurrent('passes a suite that leaves nothing, even if it closes late', async () => {
  const { failed, output } = await run('nothing');
  expect(failed, output).toBe(false);
});

it.concurrent.each([
  [
    'a server and a socket open, with their ports',
    'server',
    [
      /left behind:\s+- .*listening TCP server/,
      /open TCP socket/,
      /server on port \d+/,
      /socket from port \d+ to port \d+/,
    ],
  ],
  ['a profile folder', 'profile', [/profile folder pooled-browser-\w{6}/]],
  ['a rejection unhandled', 'rejection', [/not awaited/]],
])('fails a suite that leaves %s', async (_what, suite, texts) => {
  const { failed, output } = await run(suite);
  expect(failed).toBe(true);
  for (const text of texts) expect(output).toMatch(text);
});

it.concurrent('fails a suite that leaves a browser running, and ends that browser', async ({ expect }) => {
  const { failed, output } = await run('browser');
  expect(failed).toBe(true);
  const [, profile] = /process \d+: .*--user-data-dir=(\S*pooled-browser-left)/.exec(output) ?? [];
  expect(profile).toBeDefined();
  // A killed process disappears with a delay.
  await expect.poll(() => processesOf(profile!)).toEqual([]);
});

/** Runs a suite of leaking/ in a separate vitest process. */
async function run(suite: string): Promise<{ failed: boolean; output: string }> {
  const config = 'test/support/leaking/vitest.config.ts';
  const parameters = [vitest, 'run', '--config', config, '--color=false', `${suite}.leak.ts`];
  return new Promise((resolve) => {
    execFile(process.execPath, parameters, { env: outsideVitest() }, (error, stdout, stderr) => {
      resolve({ failed: error !== null, output: stdout + stderr });
    });
  });
}

/** With these variables, a nested vitest would behave as a worker. */
function outsideVitest(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST'));
  return Object.fromEntries(inherited);
}
