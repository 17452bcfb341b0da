import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FailureReporter } from './reporter.js';

/**
 * The layers, by the end of the file name:
 * - `*.test.ts`: no Chromium, no other process, no long wait: `npm run test:unit`;
 * - `*.real.test.ts`: real Chromium and processes, one file for each guarantee of the README: `npm test` runs both;
 * - `*.more.test.ts`: whole programs, pages, videos, jobs and simulations: `npm run test:more`.
 */
const LAYERS = {
  unit: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.{real,more}.test.ts', '**/node_modules/**'],
  },
  real: { include: ['test/**/*.real.test.ts'] },
  more: { include: ['test/**/*.more.test.ts'] },
};

/**
 * Needs less processor time than a whole Chromium, on which only the examples, the matrix and the test files with
 * `useWholeBrowser` run. Debian's package is chromium-headless-shell.
 */
const HEADLESS_SHELL = '/usr/lib/chromium/chromium-headless-shell';
const hasShell = process.env['CHROME_PATH'] === undefined && existsSync(HEADLESS_SHELL);
const browser = hasShell ? { env: { CHROME_PATH: HEADLESS_SHELL } } : {};

/** The files that take longest. A worker that began one of them last would work alone at the end. */
const LONGEST = [
  'lease/only-bidi.more',
  'examples/guides.more',
  'fixtures/playwright-test.more',
  'features/exposed-network/localhost.more',
  'examples/examples.more',
  'fixtures/vitest.more',
  'examples/runners.more',
  'package/package.more',
  'features/allowed-hosts/ends.more',
  'jobs/isolation.more',
  'local/firefox.more',
  'lease/uploads.more',
  'simulation/broken-release.more',
  'calls/proxy-load.more',
  'services/selenium-grid.more',
  'process/late.more',
  'recorder/recorder.more',
  'recorder/masks.more',
  'cli/exec.more',
  'cli/work.more',
  'process/ends.more',
  'local/live/live-view.more',
  'local/replays/recording.more',
  'local/replays/unseen.more',
  'services/browserless.more',
  'clean/clean-browser.real',
  'faults/socket.real',
  'features/exposed-network/exposed-network.real',
  'faults/load.real',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return [project.config.sequence.groupOrder, at < 0 ? LONGEST.length : at] as const;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => {
      const [[group, at], [otherGroup, otherAt]] = [place(one), place(other)];
      return group - otherGroup || at - otherAt;
    });
  }
}

const settings: Record<string, object> = {
  // A unit test that starts a browser fails, also where one is installed. Most of its time is waiting.
  unit: { env: { CHROME_PATH: '/none' }, maxWorkers: 8 },
  real: browser,
  more: browser,
};

export default defineConfig({
  test: {
    projects: Object.entries(LAYERS).map(([name, files]) => ({
      extends: true as const,
      test: {
        name,
        ...files,
        ...settings[name],
        // Layers with the same number of workers share them.
        sequence: { groupOrder: name === 'unit' ? 0 : 1 },
      },
    })),
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new FailureReporter()],
    // One line for each file.
    slowTestThreshold: 600_000,
    setupFiles: ['test/support/leaks.ts', 'test/support/own-state.ts'],
    pool: 'forks',
    // The files of a worker share its process and the modules that it has loaded: to load these again takes a second of processor
    // time for each file, half of the time of the unit tests. The leak check looks at the end of each file.
    isolate: false,
    // Tests provoke warnings.
    execArgv: ['--no-warnings'],
    // Most of the time of a test is waiting for another process: six keep two cores busy, and tests of a slow machine then run out of time.
    maxWorkers: 4,
    // Many times as long as tests take here: a machine of half the speed, with other work, needs it. A test that needs longer says so
    // beside its title.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
    // Less than the local pool's timeout for an idle session, which would hide a lease that was not released.
    expect: { poll: { timeout: 45_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});
