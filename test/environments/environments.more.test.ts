import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startChromium } from '../support/chromium.js';
import { startProgram, type Environment } from '../support/program.js';

const SUITES = 'test/environments/suites';
const { resolve } = createRequire(import.meta.url);
const VITEST = [
  join(resolve('vitest/package.json'), '../vitest.mjs'),
  'run',
  '--config',
  `${SUITES}/vitest.config.mjs`,
];
const JEST = [
  '--experimental-vm-modules',
  resolve('jest/bin/jest'),
  '--config',
  `${SUITES}/jest.config.json`,
];

/** Without the variables of the Vitest that runs this file. */
function outsideOfVitest(browser: { readonly url: string }): Environment {
  const own = Object.keys(process.env).filter((name) => /^(VITEST|TEST|NODE_ENV|NODE_OPTIONS)/.test(name));
  return {
    ...Object.fromEntries(own.map((name) => [name, undefined])),
    NO_COLOR: '1',
    CDP_URL: `http://${new URL(browser.url).host}`,
  };
}

it('leases, maps and gives fixtures in each environment of Vitest and Jest, and with nock and a MockAgent in the process', async () => {
  // Each has its own browser: a lease that ends closes the pages of another process, too.
  await using forVitest = await startChromium();
  await using forJest = await startChromium();
  const [vitest, jest] = await Promise.all([
    startProgram(VITEST, outsideOfVitest(forVitest)).ended,
    startProgram(JEST, outsideOfVitest(forJest)).ended,
  ]);
  expect(vitest.stdout + vitest.stderr).toContain('Tests  9 passed (9)');
  expect(jest.stdout + jest.stderr).toContain('Tests:       4 passed, 4 total');
}, 300_000);

it('leases although a program replaces what Node sends with, or says what to allow', async () => {
  await using browser = await startChromium();
  const environment = outsideOfVitest(browser);
  const runs = ['replaced', 'blocked'].map(
    (name) => startProgram([`${SUITES}/${name}.mjs`], environment).ended,
  );
  const [replaced, blocked] = await Promise.all(runs);
  const advice =
    "allow connections to 127.0.0.1, for example nock.enableNetConnect('127.0.0.1'), or a function as msw's onUnhandledRequest";
  expect(blocked!.stdout).toContain(advice);
  const ends = replaced!.stdout.trim().split('\n');
  expect(ends).toEqual([
    'msw with bypass: Here',
    'msw with refuseOthers: Here',
    expect.stringMatching(/^msw with error: playwright could not connect .*\[MSW\]/),
    'fetch: Here',
    expect.stringMatching(/^http\.request: playwright could not connect .*: replaced/),
    expect.stringMatching(/^net\.connect: playwright could not connect .*: replaced/),
  ]);
  expect(ends.filter((end) => end.includes(advice)).map((end) => end.replace(/:.*/, ''))).toEqual([
    'msw with error',
    'http.request',
  ]);
}, 120_000);
