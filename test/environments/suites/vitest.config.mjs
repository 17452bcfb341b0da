import { defineConfig } from 'vitest/config';

const project = (name, options) => ({ extends: true, test: { name, ...options } });

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.suite.mjs'],
    globals: true,
    testTimeout: 120_000,
    // As for the installed package: its modules need no transformation.
    server: { deps: { external: [/\/dist\//] } },
    maxWorkers: 1,
    projects: [
      project('jsdom', { environment: 'jsdom' }),
      project('happy-dom', { environment: 'happy-dom', pool: 'threads' }),
      project('nock', { setupFiles: ['./mocks.mjs'] }),
    ],
  },
});
