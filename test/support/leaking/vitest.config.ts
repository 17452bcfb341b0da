import { defineConfig } from 'vitest/config';

/** Suites that leak on purpose. leaks.more.test.ts runs them in a separate vitest process. */
export default defineConfig({
  test: {
    include: ['test/support/leaking/*.leak.ts'],
    setupFiles: ['test/support/leaks.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Most of these suites really leak.
    env: { LEAK_GRACE: '1000' },
  },
});
