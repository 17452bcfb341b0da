export default {
  test: { include: ['*.vitest.mjs'], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
};
