import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const { MUTATED_FOLDER: folder = 'lease', MUTATION_TESTS: tests = 'all' } = process.env;

/** The tests that should detect a change in the folder. */
const files = tests === 'fast' ? '!(*.real|*.more).test.ts' : '*.test.ts';
const include = [`test/${folder}/${files}`];
if (['pool', 'lease', 'jobs'].includes(folder)) include.push('test/mutation/simulation.mutation.ts');

/** With a real browser, each change would take minutes. */
const SLOW = [
  'test/{lease,clean,drivers}/*.{real,more}.test.ts',
  'test/jobs/{artifacts,isolation}.more.test.ts',
];

/** The first failure ends a run. */
class FastestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = [/(?<!\.real|\.more)\.test\.ts$/, /\.mutation\.ts$/, /\.(real|more)\.test\.ts$/];
    const rank = ({ moduleId }: TestSpecification) => order.findIndex((name) => name.test(moduleId));
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
