/**
 * `npm run bench:http`: acquire requests a second, 1, 10 and 50 at once, against global fetch, bare undici and the public
 * service's own SDK, at one server in a process of its own. SECONDS (default 2) is the length of each measurement.
 */
import Kernel from '@onkernel/sdk';
import { request } from 'undici';
import { BrowserPool } from '../../src/index.js';
import { startProgram } from './child.js';
import { median, printTable } from './figures.js';

const SECONDS = Number(process.env['SECONDS'] ?? 2);
const ROUNDS = 3;
const TOKEN = 'bench-token-0123456789';

const { facts, stop } = await startProgram('http-service.mjs');
const { baseUrl } = facts;
const url = `${baseUrl}/browser_pools/bench/acquire`;
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const body = JSON.stringify({ acquire_timeout_seconds: 25 });
const pool = new BrowserPool('bench', { baseUrl, token: TOKEN });
const kernel = new Kernel({ apiKey: TOKEN, baseURL: baseUrl });

const WAYS: Record<string, () => Promise<unknown>> = {
  'pooled-browser': () => pool.acquire({ acquire_timeout_seconds: 25 }),
  fetch: async () => (await fetch(url, { method: 'POST', headers, body })).json(),
  undici: async () => (await request(url, { method: 'POST', headers, body })).body.json(),
  '@onkernel/sdk': () => kernel.browserPools.acquire('bench', { acquire_timeout_seconds: 25 }),
};

const rows: string[][] = [];
for (const atOnce of [1, 10, 50]) {
  const rates = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [way, ask] of Object.entries(WAYS))
      rates.set(way, [...(rates.get(way) ?? []), await rateOf(ask, atOnce)]);
  }
  const ours = median(rates.get('pooled-browser')!);
  rows.push([
    `${atOnce} at once`,
    ...Object.keys(WAYS).map((way) => {
      const rate = median(rates.get(way)!);
      return way === 'pooled-browser'
        ? `${Math.round(rate)}/s`
        : `${Math.round(rate)}/s (${(ours / rate).toFixed(2)})`;
    }),
  ]);
}
printTable(
  ['', ...Object.keys(WAYS).map((way, index) => (index === 0 ? way : `${way} (ours over it)`))],
  rows,
);
await pool.close();
await stop();
process.exit();

async function rateOf(ask: () => Promise<unknown>, atOnce: number): Promise<number> {
  for (let warmUp = 0; warmUp < 20; warmUp++) await ask();
  const began = performance.now();
  const end = began + SECONDS * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() < end) {
        await ask();
        done++;
      }
    }),
  );
  return done / ((performance.now() - began) / 1000);
}
