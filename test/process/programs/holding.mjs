// Leases a browser whose release the test controls, and ends as the test says. Used by ../release.more.test.ts.
const [, , ending, tokens] = process.argv;

let isLeased = false;

if (tokens) {
  const { setInterval } = globalThis;
  let ticks = 0;
  // A minute would be too long for a test. At the second tick the guard has the token of the first one.
  globalThis.setInterval = (work, time) => {
    const tick = () => {
      work();
      if (isLeased && ++ticks === 2) process.stdout.write('rotated\n');
    };
    return time === 60_000 ? setInterval(tick, 100) : setInterval(work, time);
  };
}

const { BrowserPool, leaseBrowser } = await import('../../../dist/index.js');
const { connector } = await import('./plain.mjs');

const rotating = () => (isLeased ? 'second-token' : 'first-token');
const pool = new BrowserPool('test', tokens ? { token: rotating } : {});
// Longer than the test: this process itself repeats no release that takes long.
const releaseTimeout = 600_000;
const lease = await leaseBrowser(pool, {
  connector,
  releaseOnCrash: ending.startsWith('guarded'),
  releaseTimeout,
});
process.stdout.write('leased\n');
if (ending === 'exit') process.exit(7);
isLeased = true;
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
