/** Starts a local pool where the environment names no service, and runs shop.test.js on it. One of its two tests fails, to show its replay. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from 'pooled-browser/local';

// Uses the service that the environment names, or else starts a local pool.
await using local = process.env.BROWSER_POOL_BASE_URL ? undefined : await startLocalPool();
const service = local && { BROWSER_POOL_BASE_URL: local.baseUrl, BROWSER_POOL_ACCESS_TOKEN: local.token };

const jest = createRequire(import.meta.url).resolve('jest/bin/jest');
const folder = fileURLToPath(new URL('.', import.meta.url));
// Jest needs this flag for ES modules.
const runner = spawn(
  process.execPath,
  ['--experimental-vm-modules', jest, '--rootDir', folder, '--config={"transform":{},"testTimeout":60000}'],
  {
    env: { ...process.env, ...service },
    stdio: 'inherit',
  },
);
await once(runner, 'close');
