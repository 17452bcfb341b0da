import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startChromium } from '../support/chromium.js';
import { startProgram } from '../support/program.js';

const VITEST = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs');

it('leases and maps in the environments jsdom and happy-dom, and with nock and a MockAgent in the process', async () => {
  await using browser = await startChromium();
  const own = Object.keys(process.env).filter((name) => /^(VITEST|TEST|NODE_ENV)/.test(name));
  const environment = {
    ...Object.fromEntries(own.map((name) => [name, undefined])),
    NO_COLOR: '1',
    CDP_URL: `http://${new URL(browser.url).host}`,
  };
  const args = [VITEST, 'run', '--config', 'test/environments/suites/vitest.config.mjs'];
  const { stdout, stderr } = await startProgram(args, environment).ended;
  expect(stdout + stderr).toContain('Tests  6 passed (6)');
}, 300_000);

it('says what to allow if nock blocks the connection of Playwright to the lease on this machine', async () => {
  await using browser = await startChromium();
  const environment = { CDP_URL: `http://${new URL(browser.url).host}` };
  const { stdout } = await startProgram(['test/environments/suites/blocked.mjs'], environment).ended;
  expect(stdout).toContain("allow connections to 127.0.0.1, for example nock.enableNetConnect('127.0.0.1')");
}, 120_000);
