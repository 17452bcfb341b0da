/**
 * `npm run bench -- long-leases`: the time of a lease after many leases of the same browser, compared with raw HTTP and the
 * library alone. LEASES (default 1000).
 */
import { BrowserPool } from 'pooled-browser';
import { median, printTable, servePool, setting } from './bench.js';
import { byHand, DRIVERS, withOurs } from './ways.js';

const LEASES = setting('LEASES', 1000);
/** The first and the last tenth are compared. */
const TENTH = Math.ceil(LEASES / 10);

const rows: string[][] = [];
for (const driver of DRIVERS) {
  for (const way of ['by hand', 'pooled-browser']) {
    // A separate browser for each.
    await using served = await servePool();
    await using pool = new BrowserPool('bench', served.service);
    const lease = way === 'by hand' ? byHand(served.service, driver) : withOurs(pool, driver);
    const times: number[] = [];
    for (let index = 0; index < LEASES; index++) {
      const began = performance.now();
      await lease((page) => page.evaluate('1'));
      times.push(performance.now() - began);
    }
    const [first, last] = [median(times.slice(0, TENTH)), median(times.slice(-TENTH))];
    rows.push([
      driver,
      way,
      `${first.toFixed(1)} ms`,
      `${last.toFixed(1)} ms`,
      `×${(last / first).toFixed(2)}`,
    ]);
  }
}
printTable(['driver', 'way', `first ${TENTH} leases`, `last ${TENTH}`, 'ratio'], rows);
process.exit();
