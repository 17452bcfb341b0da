import { defineConfig } from 'vitest/config';

/** Runs that take minutes: measurements, and simulations over many seeds. `vitest run --mode long` runs only these. */
const LONG = ['test/bench/**/*.test.ts', 'test/**/*.long.test.ts'];

export default defineConfig(({ mode }) => ({
  test: {
    include: mode === 'long' ? LONG : ['test/**/*.test.ts'],
    exclude: mode === 'long' ? [] : LONG,
    setupFiles: ['test/support/leaks.ts'],
    // A process a file: the leak check can tell whose socket or browser survived.
    pool: 'forks',
    isolate: true,
    maxWorkers: 2,
    testTimeout: mode === 'long' ? 20 * 60_000 : 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    // The default of a second is too short for a busy machine.
    expect: { poll: { timeout: 15_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
}));
