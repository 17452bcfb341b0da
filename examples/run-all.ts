/**
 * Runs the other examples in sequence, until one fails. It does not run the examples of test runners, because one of
 * their tests fails on purpose.
 */
for (const load of [
  () => import('./hello-playwright.js'),
  () => import('./hello-puppeteer-bidi.js'),
  () => import('./await-using.js'),
  () => import('./opentelemetry/main.js'),
  () => import('./other-library/main.js'),
  () => import('./ai-agent/main.js'),
  () => import('./agent-session/main.js'),
  () => import('./mcp/main.js'),
  () => import('./python/main.js'),
  () => import('./crawlee/main.js'),
  () => import('./chaos/main.js'),
  () => import('./many-machines/main.js'),
]) {
  await load();
  console.log('');
}
