/**
 * Runs the other examples, one after the other; ends with the first that fails. Without those of test runners: one of
 * their two tests fails, to show its replay, which is no news here (test/examples runs them and reads their reports).
 */
for (const load of [
  () => import('./hello-playwright.js'),
  () => import('./hello-puppeteer-bidi.js'),
  () => import('./await-using.js'),
  () => import('./opentelemetry/main.js'),
  () => import('./ai-agent/main.js'),
  () => import('./agent-session/main.js'),
  () => import('./mcp/main.js'),
  () => import('./python/main.js'),
  () => import('./crawlee/main.js'),
  () => import('./bullmq/main.js'),
]) {
  await load();
  console.log('');
}
