import { existsSync, readdirSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import type { Reporter, TestCase } from 'vitest/node';

/** Tests without Chromium, other processes and long waits: `npm run test:unit`. */
const UNIT = [
  /^test\/(connect|fixtures|lease|map|service|shared|structure|types)\/[\w-]+\.test\.ts$/,
  /\/(cdp-message|command-queue|frames|jwt|recording-store|start-screencast)\.test\.ts$/,
];

/** Files that the patterns above should not match. `npm test` runs these and `UNIT`. */
const NOT_UNIT = [
  /^test\/connect\/existing-bidi-session\./,
  /^test\/lease\/(acquire-pauses|deadline|detach|faults|lease-browser|long-leases|nested|plain-clients)\./,
  /^test\/lease\/(reconnect|replays|stats|tracing|with-pooled-browser)\./,
  /^test\/(map\/(killed-compaction|task-value)|service\/(download-replay|release))\./,
];

/**
 * `npm run test:more`: whole programs, pages, videos and jobs, simulations, and what other tests of a guarantee repeat
 * with more kinds of faults. `npm test` has one file for each guarantee of the README, and real Chromium over all
 * protocols.
 */
const MORE = [
  /^test\/(cli|examples|package|lease\/replays)\//,
  /^test\/connect\/unresponsive-page\./,
  /^test\/faults\/(abort|browser|callback|http|release|upgrade)\./,
  /^test\/fixtures\/(playwright-test|vitest)\./,
  /^test\/lease\/(artifacts|outage)\./,
  /^test\/local\/(display|pages)\//,
  /^test\/local\/(live\/live-view|replays\/(disk-full|ends|recording|timeline|video-writer))\./,
  /^test\/local\/(browser-loss|chaos|lifetime|start-failures)\./,
  /^test\/map\/(artifacts|chaos|downloads|ends|isolation|queue\/.*)\./,
  /^test\/process\/(freeze|local-service|release)\./,
  /^test\/simulation\/(broken-release|failpoints\/failpoints|map)\./,
];

/**
 * Files without mocked modules share the modules that they load, which halves the time of the unit tests. The other layers
 * have a process for each file, so that the leak check can attribute a socket or browser.
 */
const SHARED = { pool: 'threads', isolate: false } as const;

/**
 * Needs less processor time than a whole Chromium, on which only the examples, the matrix and the test files with
 * `useWholeBrowser` run. Debian's package is chromium-headless-shell.
 */
const HEADLESS_SHELL = '/usr/lib/chromium/chromium-headless-shell';
const hasShell = process.env['CHROME_PATH'] === undefined && existsSync(HEADLESS_SHELL);
const browser = hasShell ? { env: { CHROME_PATH: HEADLESS_SHELL } } : {};

const settings: Record<string, object> = {
  // A unit test that starts a browser fails, also where one is installed.
  unit: { ...SHARED, env: { CHROME_PATH: '/none' } },
  real: browser,
  more: browser,
};

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name.replaceAll('\\', '/')}`)
  .filter((name) => name.endsWith('.test.ts'));
export const layers: Record<string, string[]> = { unit: [], real: [], more: [] };
for (const file of files) layers[layerOf(file)]!.push(file);

function layerOf(file: string): string {
  const matches = (layer: RegExp[]) => layer.some((pattern) => pattern.test(file));
  if (matches(MORE)) return 'more';
  return matches(UNIT) && !matches(NOT_UNIT) ? 'unit' : 'real';
}

/** After a failure: how to repeat the test. */
const repeatHint = {
  onTestCaseResult(test: TestCase) {
    if (test.result().state !== 'failed') return;
    const command = `npx vitest run --config test/vitest.config.ts ${test.module.relativeModuleId}`;
    console.error(`FAILED: ${test.fullName}\n  Repeat it: ${command} -t ${JSON.stringify(test.name)}`);
  },
} satisfies Reporter;

export default defineConfig({
  test: {
    projects: Object.entries(layers).map(([name, include]) => ({
      extends: true as const,
      test: { name, include, ...settings[name] },
    })),
    reporters: ['default', repeatHint],
    // One line for each file.
    slowTestThreshold: 600_000,
    setupFiles: ['test/support/leaks.ts'],
    pool: 'forks',
    isolate: true,
    // Tests provoke warnings.
    execArgv: ['--no-warnings'],
    // Many tests wait for another process: two cores are busy with four of them.
    maxWorkers: 4,
    // Only a test that hangs reaches them.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 10_000,
    // Less than the local pool's timeout for an idle session, which would hide a lease that was not released.
    expect: { poll: { timeout: 45_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});
