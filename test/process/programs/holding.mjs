// Leases a browser whose release the test controls, and ends as the test says. Used by ../release.more.test.ts.
import { BrowserPool, leaseBrowser } from '../../../dist/index.js';
import { connector } from './plain.mjs';

const [, , ending] = process.argv;
const pool = new BrowserPool('test');
// Longer than the test: this process itself repeats no release that takes long.
const releaseTimeout = 600_000;
const lease = await leaseBrowser(pool, {
  connector,
  releaseOnCrash: ending.startsWith('guarded'),
  releaseTimeout,
});
process.stdout.write('leased\n');
if (ending === 'exit') process.exit(7);
if (ending === 'guarded' || ending === 'release') {
  await lease.release();
  process.stdout.write('released\n');
}
if (ending === 'guarded-again') {
  const releasing = lease.release();
  await leaseBrowser(pool, { connector, releaseOnCrash: true });
  await releasing;
  process.stdout.write('leased again\n');
}
await new Promise((resolve) => setTimeout(resolve, 60_000));
