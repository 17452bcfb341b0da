import { defineConfig } from '@playwright/test';
import type { PooledFixtures } from 'pooled-browser/playwright-test';

const PORT = 5199;

export default defineConfig<object, PooledFixtures>({
  globalSetup: './local-pool.ts',
  outputDir: '../../reports/localhost',
  workers: 1,
  webServer: {
    command: `npx vite --port ${PORT} --strictPort --logLevel warn`,
    url: `http://localhost:${PORT}`,
  },
  use: {
    baseURL: `http://localhost:${PORT}`,
    pooledBrowser: { pool: 'default', exposeNetwork: `localhost:${PORT}` },
  },
});
