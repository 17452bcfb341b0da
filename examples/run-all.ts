/**
 * Runs the other examples in sequence, until one fails. It does not run the examples of test runners, because one of
 * their tests fails on purpose.
 */
for (const name of [
  'hello-playwright',
  'hello-puppeteer-bidi',
  'await-using',
  'opentelemetry/main',
  'other-library/main',
  'own-service/main',
  'ai-agent/main',
  'agent-session/main',
  'mcp/main',
  'mcp-lease/main',
  'python/main',
  'crawlee/main',
  'many-machines/main',
]) {
  console.log(`${name}:`);
  await import(`./${name}.js`);
  console.log('');
}
