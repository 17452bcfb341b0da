export { expect } from '@playwright/test';
export { test, type PlaywrightTestOptions, type PooledFixtures } from './fixtures/playwright-test.js';
