import { defineConfig } from 'vitest/config';

/** Suites that leak on purpose, run by leaks.test.ts in a vitest of its own. */
export default defineConfig({
  test: {
    include: ['test/support/leaking/*.leak.ts'],
    setupFiles: ['test/support/leaks.ts'],
    pool: 'forks',
    maxWorkers: 1,
  },
});
