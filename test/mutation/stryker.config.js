const room = process.env['MUTATED_ROOM'];

/** Settings of Stryker for one room of src/, see mutate.ts. */
export default {
  mutate: [`src/${room}/**/*.ts`],
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner', './test/mutation/ignore-messages.js'],
  ignorers: ['messages'],
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  coverageAnalysis: 'perTest',
  // What runs once, while a file loads, would take a run of all tests for each change: constants, mostly.
  ignoreStatic: true,
  // Stryker would rewrite it with an interface that TypeScript 7 no longer has. There is nothing in it to rewrite.
  tsconfigFile: 'none',
  ignorePatterns: ['dist', 'examples', '.ci'],
  concurrency: 2,
  // A change that makes tests hang is noticed by that, after this and the time that they take by themselves.
  timeoutMS: 15_000,
  timeoutFactor: 1.5,
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { logTests: false, reportTests: false },
  jsonReporter: { fileName: `reports/mutation/${room}.json` },
  htmlReporter: { fileName: `reports/mutation/${room}.html` },
  incrementalFile: `reports/mutation/${room}.incremental.json`,
};
