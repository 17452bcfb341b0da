/** Runs the other examples, one after the other; ends with the first that fails. */
for (const load of [
  () => import('./hello-playwright.js'),
  () => import('./hello-puppeteer-bidi.js'),
  () => import('./await-using.js'),
]) {
  await load();
  console.log('');
}
