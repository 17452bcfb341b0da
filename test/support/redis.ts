import { afterAll, beforeAll, describe } from 'vitest';
import { hasRedis, TestRedis } from './redis-server.js';

const SKIPPED = hasRedis ? '' : ' (skipped: there is no redis-server; apt-get install redis-server)';

/** Tests that need Redis. Where it is not installed, the report shows why they are skipped. */
export function describeWithRedis(title: string, tests: () => void): void {
  describe.skipIf(!hasRedis)(`${title}${SKIPPED}`, () => {
    tests();
  });
}

/** A Redis for the whole test file. */
export function useRedis(): { redis: TestRedis } {
  const used = {} as { redis: TestRedis };
  beforeAll(async () => {
    used.redis = await TestRedis.start();
  });
  afterAll(() => used.redis?.[Symbol.asyncDispose]());
  return used;
}
