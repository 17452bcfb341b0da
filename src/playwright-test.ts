export { expect } from '@playwright/test';
export { test, type PooledFixtures } from './fixtures/playwright-test/test.js';
export type { PlaywrightTestOptions } from './fixtures/playwright-test/options.js';
