import { defineConfig } from 'vitest/config';
import type { ProvidedOptions } from 'pooled-browser/vitest';

/** For all tests of the project; a config with several projects may give each its own. */
const pooledBrowser: ProvidedOptions = { pool: 'default' };

export default defineConfig({
  test: {
    root: import.meta.dirname,
    globalSetup: 'local-pool.ts',
    provide: { pooledBrowser },
    // Fixtures and hooks may wait for a browser to start.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
