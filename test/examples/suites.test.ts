import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startLocalPool } from '../../src/local.js';

const SUITES = ['vitest', 'playwright-test'];
const COMMANDS = SUITES.flatMap((suite) => {
  const readme = readFileSync(`examples/${suite}/README.md`, 'utf8');
  return /```sh\n([^`]+)```/.exec(readme)![1]!.trim().split('\n');
});

it.each(COMMANDS)('runs on a browser of this machine: %s', { timeout: 180_000 }, async (command) => {
  await run(command);
});

it.each(COMMANDS)(
  'runs on the service that the environment names: %s',
  { timeout: 180_000 },
  async (command) => {
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
