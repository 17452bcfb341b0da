export default {
  testMatch: '*.playwright.mjs',
  timeout: 5000,
  expect: { timeout: 60_000 },
  workers: 1,
  use: { screenshot: 'only-on-failure', pooledBrowser: { artifacts: { folder: 'artifacts' } } },
};
