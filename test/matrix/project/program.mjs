// Leases a browser, prints a line, and ends in the way that the argument names.
import { leaseBrowser, withPooledBrowser } from 'pooled-browser/playwright';
import * as puppeteer from 'pooled-browser/puppeteer';

const visit = async ({ page }) => {
  await page.goto('data:text/html,<title>visited</title>');
  return page.title();
};
const [how] = process.argv.slice(2);
if (how === 'embedded') {
  // The browsers of this machine, without a service. Afterwards, the process has nothing else to do, and ends.
  for (const run of [
    await withPooledBrowser('own', visit),
    await puppeteer.withPooledBrowser('own', visit),
    await puppeteer.withPooledBrowser('own', visit, { protocol: 'bidi' }),
  ])
    console.log(run.value, run.released, ...run.cleanupErrors.map(({ cause }) => cause?.message));
} else {
  // A listener that runs once decides about the signal: the program ends by it.
  if (how === 'SIGINT') process.once('SIGINT', () => setTimeout(() => process.exit(5), 300));
  const lease = await leaseBrowser('default', { releaseOnCrash: how === 'SIGKILL' });
  console.log(await lease.use(visit));
  const end = {
    exit: () => process.exit(3),
    exception: () =>
      setTimeout(() => {
        throw new Error('uncaught');
      }),
    rejection: () => void Promise.reject(new Error('unhandled')),
  };
  setInterval(() => {}, 1000);
  end[how]?.();
}
