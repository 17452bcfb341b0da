import { dirname } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const SIMULATION = 'test/mutation/simulation.mutation.ts';

/**
 * Of each room the tests that are to notice a change, the quickest folder first, for the first test that fails ends the
 * run.
 */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  acquire: ['test/acquire/*.test.ts', SIMULATION],
  run: ['test/run/*.test.ts', SIMULATION],
  connect: ['test/connect/*.test.ts'],
};

/** With a real browser, or with waits in real time, each change would take minutes. */
const SLOW = [
  'test/acquire/{abort-race,deadline}.test.ts',
  'test/run/{faults,lease-browser,nested,plain-clients,replays,with-pooled-browser}.test.ts',
  'test/connect/{existing-bidi-session,frozen-page}.test.ts',
];

const include = TESTS[process.env['MUTATED_ROOM']!]!;

class QuickestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      include.findIndex((path) => moduleId.includes(`/${dirname(path)}/`));
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include: [...include],
    exclude: SLOW,
    setupFiles: ['test/mutation/setup.ts'],
    // Each mutant has a worker of its own in any case; its test files share what they have loaded.
    isolate: false,
    sequence: { sequencer: QuickestFirst },
    // Shorter than usual: a test that hangs has noticed the change.
    testTimeout: 10_000,
    expect: { poll: { timeout: 5000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});
