/**
 * `npm run bench -- allowed-hosts-ends`: what pages do after the end of a lease with `allowedHosts`: for each way to end it and each
 * client, the UDP packets of a page with four pop-ups that look for WebRTC all the time and block for 3 s while they are closed, and
 * for how many ms one of them ran after the release; the most of RUNS (default 10). FLAG=1 starts the browsers with
 * --webrtc-ip-handling-policy=disable_non_proxied_udp, and with the flag of the headless shell. ONLY: a part of the names of clients and ends.
 */
import { startLocalPool } from '../../src/local.js';
import { NO_UDP } from '../../src/local/browser/chromium-flags.js';
import { LEASE_ENDS } from '../support/lease-ends.js';
import { PollingPages } from '../support/polling-pages.js';
import { printTable, setting } from './bench.js';

const RUNS = setting('RUNS', 10);
const { FLAG, ONLY = '' } = process.env;
const args = FLAG === undefined ? [] : NO_UDP;
const rows: (string | number)[][] = [];
for (const [client, ends] of Object.entries(LEASE_ENDS))
  for (const [name, end] of Object.entries(ends)) {
    if (!`${client}: ${name}`.includes(ONLY)) continue;
    await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }], args });
    await using pages = await PollingPages.open(3000);
    const { allowedHosts, show } = pages;
    const most = { packets: 0, ranFor: 0 };
    for (let run = 0; run < RUNS; run++) {
      const { packets, ranFor } = await pages.watch(await end({ local, allowedHosts, show }));
      most.packets = Math.max(most.packets, packets);
      most.ranFor = Math.max(most.ranFor, ranFor);
    }
    const row = [client, name, RUNS, most.packets, most.ranFor];
    rows.push(row);
    console.log(row.join('  '));
  }
printTable(['client', 'end', 'runs', 'most packets', 'ran after the release, ms'], rows);
