/**
 * A leased browser as fixtures of Playwright Test.
 *
 * @module pooled-browser/playwright-test
 */
export { expect } from '@playwright/test';
export { createTest, test, type PooledTestOptions, type PooledFixtures } from './fixtures/playwright-test.js';
export type { LeaseFixtures } from './fixtures/test-facts.js';
