import { defineConfig } from 'vitest/config';

/** Runs that take minutes: measurements, and simulations over many seeds. `vitest run --mode long` runs only these. */
const LONG = ['test/bench/**/*.test.ts', 'test/**/*.long.test.ts'];

/** Whole programs, pages, films and jobs, and what takes long: `npm run test:more`, so that `npm test` stays short. */
const MORE = [
  'test/{cli,examples,fixtures,map,package,lease/replays}/**/*.test.ts',
  'test/local/{display,live,pages,replays}/**/*.test.ts',
  'test/local/{browser-loss,lifetime,start-failures}.test.ts',
  'test/{faults/load,simulation/failpoints/failpoints}.test.ts',
];
const FILES: Readonly<Record<string, { include: string[]; exclude: string[] }>> = {
  long: { include: LONG, exclude: [] },
  more: { include: MORE, exclude: LONG },
};
const OTHERS = { include: ['test/**/*.test.ts'], exclude: [...LONG, ...MORE] };

export default defineConfig(({ mode }) => ({
  test: {
    ...(FILES[mode] ?? OTHERS),
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
