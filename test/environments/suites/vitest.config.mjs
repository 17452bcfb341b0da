import { defineConfig } from 'vitest/config';

const project = (name, options) => ({ extends: true, test: { name, ...options } });

// The projects share one process of local browsers. All tests of Jest are in one process.
process.env.LOCAL_OWNER = String(process.pid);

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['fixture.suite.mjs'],
    globals: true,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // As for the installed package: its modules need no transformation.
    server: { deps: { external: [/\/dist\//] } },
    maxWorkers: 1,
    projects: [
      project('jsdom', { environment: 'jsdom', pool: 'vmThreads' }),
      project('happy-dom', { environment: 'happy-dom', pool: 'threads' }),
      // Its process of local browsers is started with the mocks.
      project('nock', { setupFiles: ['./mocks.mjs'], pool: 'forks', env: { LOCAL_OWNER: '' } }),
    ],
  },
});
