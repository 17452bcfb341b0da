/**
 * `npm run bench:http`: acquire requests per second, 1, 10 and 50 at once, against global fetch, undici alone and the
 * public service's own SDK, at one server in another process. SECONDS (default 2) is the length of each measurement.
 */
import Kernel from '@onkernel/sdk';
import { request } from 'undici';
import { BrowserPool } from '../../src/index.js';
import { compare, printComparison, setting, startProgram } from './bench.js';

const SECONDS = setting('SECONDS', 2);
const PEERS = ['fetch', 'undici', '@onkernel/sdk'];

await using program = await startProgram('busy-service.mjs', 'unlimited');
const { baseUrl, token } = program.service;
const url = `${baseUrl}/browser_pools/bench/acquire`;
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const body = JSON.stringify({ acquire_timeout_seconds: 25 });
const pool = new BrowserPool('bench', { baseUrl, token });
const kernel = new Kernel({ apiKey: token, baseURL: baseUrl });

const CLIENTS: Record<string, () => Promise<unknown>> = {
  'pooled-browser': () => pool.acquire({ acquire_timeout_seconds: 25 }),
  fetch: async () => (await fetch(url, { method: 'POST', headers, body })).json(),
  undici: async () => (await request(url, { method: 'POST', headers, body })).body.json(),
  '@onkernel/sdk': () => kernel.browserPools.acquire('bench', { acquire_timeout_seconds: 25 }),
};

const rows: string[][] = [];
for (const atOnce of [1, 10, 50]) {
  const clients = Object.entries(CLIENTS);
  const ways = clients.map(
    ([name, ask]) => [name, async () => ({ rate: await rateOf(ask, atOnce) })] as const,
  );
  const comparison = { ways: Object.fromEntries(ways), units: { rate: 'requests/s' }, peers: PEERS };
  rows.push(...(await compare({ subject: `${atOnce} at once`, ...comparison, rounds: 3, warmUp: 0 })));
}
printComparison(rows, PEERS);
await pool.close();
await program[Symbol.asyncDispose]();
process.exit();

async function rateOf(ask: () => Promise<unknown>, atOnce: number): Promise<number> {
  for (let warmUp = 0; warmUp < 20; warmUp++) await ask();
  const began = performance.now();
  let done = 0;
  const askOn = async () => {
    for (; performance.now() < began + SECONDS * 1000; done++) await ask();
  };
  await Promise.all(Array.from({ length: atOnce }, askOn));
  return done / ((performance.now() - began) / 1000);
}
