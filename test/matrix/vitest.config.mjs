export default { test: { include: ['fixtures.vitest.mjs'], testTimeout: 60_000, hookTimeout: 60_000 } };
