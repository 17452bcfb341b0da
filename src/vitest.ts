export { createTest, type PooledFixtures } from './fixtures/vitest/create-test.js';
export { test } from './fixtures/vitest/test.js';
export type { LeaseScope, ProvidedOptions, VitestOptions } from './fixtures/vitest/options.js';
export type { BrowserReport } from './fixtures/held-lease.js';
