/**
 * `npm run bench:round-trips`: how many serial round trips a lease takes, from the call to a usable page and from the
 * callback's end to the end of the call. A proxy holds every byte back; the slope over the delay is the number.
 * ROUNDS (default 7) sets how often.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool } from 'pooled-browser';
import { byHand, PROTOCOLS, withOurs, type LeaseOnce } from './by-hand.js';
import { DelayProxy } from './delay-proxy.js';
import { median, printTable } from './figures.js';
import { servePool } from './served-pool.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 7);
const ROUND_TRIPS = [0, 50, 100];

await using served = await servePool();
await using proxy = await DelayProxy.to(served.service);
const service = { ...served.service, baseUrl: proxy.baseUrl };
const rows: string[][] = [];
for (const protocol of PROTOCOLS) {
  const warm = new BrowserPool('bench', service);
  const row = async (way: string, lease: LeaseOnce, tidyUp?: () => Promise<void>) => {
    const [begin, end] = await measure(lease, tidyUp);
    rows.push([protocol, way, begin.toFixed(1), end.toFixed(1)]);
  };
  await row('by hand, warm', byHand(service, protocol));
  await row('pooled-browser, warm', withOurs(service, protocol, warm));
  await row(
    'the same, awaitRelease: false',
    withOurs(service, protocol, warm, { awaitRelease: false }),
    // The release that is under way: the next acquire would wait for it.
    () => sleep(2 * proxy.roundTrip + 20),
  );
  await warm.close();
  // With its last pool, the sockets of an origin are closed.
  let cold = new BrowserPool('bench', service);
  await row(
    'pooled-browser, cold',
    (use) => withOurs(service, protocol, cold)(use),
    async () => {
      await cold.close();
      cold = new BrowserPool('bench', service);
    },
  );
  await cold.close();
}
printTable(['driver', 'way', 'round trips to a usable page', 'round trips after the callback'], rows);
await proxy[Symbol.asyncDispose]();
await served[Symbol.asyncDispose]();
process.exit();

/** The slopes of both parts over the delay. */
async function measure(lease: LeaseOnce, tidyUp = async () => {}): Promise<[number, number]> {
  const points: [number, number, number][] = [];
  for (const roundTrip of ROUND_TRIPS) {
    proxy.roundTrip = roundTrip;
    const times: [number, number][] = [];
    // The first is not counted: it may find sockets from before the delay.
    for (let round = -1; round < ROUNDS; round++) {
      const time = await timeOnce(lease);
      if (round >= 0) times.push(time);
      await tidyUp();
    }
    points.push([roundTrip, median(times.map(([begin]) => begin)), median(times.map(([, end]) => end))]);
  }
  const last = points.at(-1)!;
  const over = last[0] - points[0]![0];
  return [(last[1] - points[0]![1]) / over, (last[2] - points[0]![2]) / over];
}

/** Of a callback that has used its page: the first script in a document takes Playwright one round trip more. */
async function timeOnce(lease: LeaseOnce): Promise<[number, number]> {
  const began = performance.now();
  let usable = 0;
  let done = 0;
  await lease(async (page) => {
    usable = performance.now();
    await page.evaluate('1');
    done = performance.now();
  });
  return [usable - began, performance.now() - done];
}
