import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';

/** The command for a person, and the one for CI. Each suite runs on this machine and on a service. */
const COMMANDS = ['vitest', 'playwright-test'].map((suite) => {
  const readme = readFileSync(`examples/${suite}/README.md`, 'utf8');
  const [local = '', service = '', ...more] = /```sh\n([^`]+)```/.exec(readme)![1]!.trim().split('\n');
  return { local, service, more };
});

it('covers every command of the examples', () => {
  for (const { local, service, more } of COMMANDS) {
    expect([local, service]).not.toContain('');
    expect(more).toEqual([]);
  }
});

it.each(COMMANDS)('runs on a browser of this machine: $local', async ({ local }) => {
  await run(local);
});

it.each(COMMANDS)(
  'runs on the service that the environment names: $service',
  async ({ service: command }) => {
    await using service = await startLocalPool({ pools: [{ name: 'default', size: 2 }] });
    await run(command, {
      BROWSER_POOL_BASE_URL: service.baseUrl,
      BROWSER_POOL_ACCESS_TOKEN: service.token,
    });
    const { granted, released, leased } = service.stats();
    expect(granted).toBeGreaterThan(0);
    expect({ released, leased }).toEqual({ released: granted, leased: 0 });
  },
);

/** Runs a command. Rejects with its output when the command fails. */
async function run(command: string, environment: Record<string, string> = {}): Promise<void> {
  // The variables of this test runner must not reach the runners that it starts.
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name));
  await promisify(execFile)('sh', ['-c', command], { env: { ...Object.fromEntries(own), ...environment } });
}
