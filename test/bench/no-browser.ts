/**
 * `npm run bench:no-browser`: what a lease costs besides the browser and the automation library: `withPooledBrowser` with
 * a connector that does nothing, against the same requests and WebSocket by hand. The service answers immediately, in
 * another process. ROUNDS (default 30) of LEASES (default 50) each.
 */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { BrowserPool, withPooledBrowser, type Connector } from 'pooled-browser';
import { plainConnector } from '../support/plain-connector.js';
import { compare, printComparison, setting, startProgram, time } from './bench.js';
import { rawClient } from './ways.js';

const ROUNDS = setting('ROUNDS', 30);
const LEASES = setting('LEASES', 50);
const BY_HAND = 'by hand, the same steps';

// Its type is that of the source, and this benchmark measures the built package.
const connector = plainConnector as unknown as Connector<object>;

await using program = await startProgram('busy-service.mjs', 'unlimited');
const pool = new BrowserPool('bench', program.service);
const client = rawClient(program.service);
const ways = {
  [BY_HAND]: () => measure(leaseByHand),
  'pooled-browser': () => measure(() => withPooledBrowser(pool, () => {}, { connector })),
};
const units = { wall: 'ms', CPU: 'ms' };
const comparison = { subject: 'a lease', ways, units, peers: [BY_HAND], rounds: ROUNDS, warmUp: 5 };
printComparison(await compare(comparison), [BY_HAND]);
await pool.close();
await program[Symbol.asyncDispose]();
process.exit();

async function leaseByHand(): Promise<void> {
  const { session_id, cdp_ws_url } = await client.acquire();
  const earlier = client.replays(session_id);
  const socket = new WebSocket(cdp_ws_url, { perMessageDeflate: false });
  await once(socket, 'open');
  await Promise.all([earlier, client.replays(session_id)]);
  socket.close(1000);
  await once(socket, 'close');
  await client.release(session_id);
}

async function measure(lease: () => Promise<unknown>): Promise<Record<keyof typeof units, number>> {
  const before = process.cpuUsage();
  const wall = await time(async () => {
    for (let count = 0; count < LEASES; count++) await lease();
  });
  const { user, system } = process.cpuUsage(before);
  return { wall: wall / LEASES, CPU: (user + system) / 1000 / LEASES };
}
