/**
 * A leased browser as fixtures of Vitest.
 *
 * @module pooled-browser/vitest
 */
export {
  createTest,
  test,
  type LeaseScope,
  type PooledFixtures,
  type ProvidedOptions,
  type VitestOptions,
} from './fixtures/vitest.js';
export type { BrowserReport, TestLeaseOptions } from './fixtures/held-lease.js';
export type { LeaseFixtures } from './fixtures/test-facts.js';
