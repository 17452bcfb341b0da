/**
 * `npm run bench -- round-trips`: the number of serial round trips of a lease, from the call to a usable page and from the
 * end of the callback to the end of the call. Both connections use TLS, and a proxy delays every byte; the number is the
 * time that each ms of delay adds. ROUNDS (default 7), DELAY (default 100 ms, in both directions together; with a longer
 * one, the work of the processor counts less).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { BrowserPool } from 'pooled-browser';
import { median, printTable, servePool, setting } from './bench.js';
import { DelayProxy } from './delay-proxy.js';
import { byHand, DRIVERS, withOurs, type LeaseOnce } from './ways.js';

const ROUNDS = setting('ROUNDS', 7);
const LONG = setting('DELAY', 100);
// The certificate of the proxy is its own.
process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';

await using served = await servePool();
await using proxy = await DelayProxy.to(served.service);
const service = { ...served.service, baseUrl: proxy.baseUrl };
const rows: string[][] = [];
for (const driver of DRIVERS) {
  const warm = new BrowserPool('bench', service);
  let cold = new BrowserPool('bench', service);
  // The next acquire request would wait for a release that is still under way.
  const afterRelease = () => sleep(2 * proxy.roundTrip + 20);
  const renewAgent = async () => {
    await getGlobalDispatcher().close();
    setGlobalDispatcher(new Agent());
  };
  // The sockets of an origin are closed together with its last pool.
  const renewCold = async () => {
    await cold.close();
    cold = new BrowserPool('bench', service);
  };
  const ways: [way: string, lease: LeaseOnce, afterwards?: () => Promise<void>][] = [
    ['by hand, warm', byHand(service, driver)],
    ['pooled-browser, warm', withOurs(warm, driver)],
    ['the same, awaitRelease: false', withOurs(warm, driver, { awaitRelease: false }), afterRelease],
    ['by hand, cold', byHand(service, driver), renewAgent],
    ['pooled-browser, cold', (use) => withOurs(cold, driver)(use), renewCold],
  ];
  for (const [way, lease, afterwards] of ways) {
    // With another open pool, the last way would not be cold.
    if (way === 'pooled-browser, cold') await warm.close();
    const [begin, end] = await measure(lease, afterwards);
    rows.push([driver, way, begin.toFixed(1), end.toFixed(1)]);
  }
  await cold.close();
}
printTable(['driver', 'way', 'round trips to a usable page', 'round trips after the callback'], rows);
await proxy[Symbol.asyncDispose]();
await served[Symbol.asyncDispose]();
process.exit();

async function measure(lease: LeaseOnce, afterwards = async () => {}): Promise<[number, number]> {
  const medians: [number, number][] = [];
  for (const roundTrip of [0, LONG]) {
    proxy.roundTrip = roundTrip;
    const times: [number, number][] = [];
    // The first round does not count: its sockets may be older than the delay.
    for (let round = -1; round < ROUNDS; round++) {
      const measured = await timeOnce(lease);
      if (round >= 0) times.push(measured);
      await afterwards();
    }
    medians.push([median(times.map(([begin]) => begin)), median(times.map(([, end]) => end))]);
  }
  const [near, far] = medians as [[number, number], [number, number]];
  return [(far[0] - near[0]) / LONG, (far[1] - near[1]) / LONG];
}

/** The callback uses its page, because the first script in a document takes Playwright one more round trip. */
async function timeOnce(lease: LeaseOnce): Promise<[number, number]> {
  const began = performance.now();
  let [usable, done] = [0, 0];
  await lease(async (page) => {
    usable = performance.now();
    await page.evaluate('1');
    done = performance.now();
  });
  return [usable - began, performance.now() - done];
}
