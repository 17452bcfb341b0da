import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const { MUTATED_FOLDER: folder = 'lease', MUTATION_TESTS: tests = 'all' } = process.env;

/** The tests that should detect a change in the folder. */
const include =
  tests === 'fast'
    ? [`test/${folder}/!(*.real|*.more).test.ts`]
    : [`test/${folder}/*.test.ts`, 'test/lease/replays/{abort,record}.more.test.ts'];
if (['service', 'lease', 'map'].includes(folder)) include.push('test/mutation/simulation.mutation.ts');

/** With a real browser or with waits in real time, each change would take minutes. */
const SLOW = [
  'test/lease/{faults,lease-browser,nested,plain-clients,replays,with-pooled-browser}.*.test.ts',
  'test/connect/{existing-bidi-session,unresponsive-page}.*.test.ts',
  'test/map/{chaos,downloads,isolation}.*.test.ts',
];

/** The first failure ends a run. */
class FastestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      moduleId.endsWith('.mutation.ts') ? 1 : /\.(real|more)\.test/.test(moduleId) ? 2 : 0;
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include,
    exclude: SLOW,
    setupFiles: ['test/mutation/setup.ts'],
    // Stryker starts a worker for each change anyway; the test files of one change share their modules.
    isolate: false,
    sequence: { sequencer: FastestFirst },
    // A test that hangs has detected the change. A test that is only slow on a busy machine must not time out.
    testTimeout: 90_000,
    expect: { poll: { timeout: 30_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});
