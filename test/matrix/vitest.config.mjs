export default { test: { include: ['fixtures.vitest.mjs'] } };
