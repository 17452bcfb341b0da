const { MUTATED_FOLDER: folder = 'lease', MUTATED_FILES: files = `src/${folder}/**/*.ts` } = process.env;

/** Stryker's settings for files of one folder of src/, see mutate.ts. */
export default {
  mutate: files.split(','),
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner', './test/mutation/ignore-messages.js'],
  ignorers: ['messages'],
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // Code that runs once, while a file loads, is mostly constants; each change would take a run of all tests.
  ignoreStatic: true,
  // Stryker would rewrite tsconfig.json with an API that TypeScript 7 does not have.
  tsconfigFile: 'none',
  ignorePatterns: ['dist', 'examples', '.ci'],
  concurrency: 2,
  // A change that makes tests hang counts as detected after this time plus their usual time.
  timeoutMS: 90_000,
  timeoutFactor: 1.5,
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { logTests: false, reportTests: false },
  jsonReporter: { fileName: `reports/mutation/${folder}.json` },
  htmlReporter: { fileName: `reports/mutation/${folder}.html` },
  incrementalFile: `reports/mutation/${folder}.incremental.json`,
};
