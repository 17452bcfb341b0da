import { defineConfig } from '@playwright/test';
import type { PooledFixtures } from 'pooled-browser/playwright-test';

export default defineConfig<object, PooledFixtures>({
  globalSetup: './local-pool.ts',
  outputDir: '../../reports/playwright-test',
  // Workers beyond the size of the pool only wait for each other.
  workers: 2,
  use: {
    pooledBrowser: { pool: 'default' },
    trace: 'retain-on-failure',
    screenshot: 'only-on-failure',
  },
});
