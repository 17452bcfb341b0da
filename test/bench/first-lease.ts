/**
 * `npm run bench:first-lease`: the first lease of a process, at a service that grants it after WAIT ms (default 300). What
 * the library still has to import then (undici, ws, p-retry, the driver) is hidden in the wait, or is not: against the
 * same lease with all of it imported before. ROUNDS (default 15) sets how often. Wants `dist/`.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { median, printTable } from './figures.js';
import { servePool } from './served-pool.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 15);
const WAIT = Number(process.env['WAIT'] ?? 300);
const PROGRAM = fileURLToPath(new URL('programs/first-lease.mjs', import.meta.url));

await using served = await servePool();
let calledAt = 0;
let arrivedAt = 0;
const service = createServer(async (request, response) => {
  if (request.url!.endsWith('/acquire')) {
    arrivedAt = performance.now();
    await sleep(WAIT);
  }
  const { method } = request;
  const headers = { ...request.headers, host: new URL(served.service.baseUrl).host };
  const onward = forward(served.service.baseUrl + request.url!, { method, headers }, (answer) =>
    answer.pipe(response.writeHead(answer.statusCode!, answer.headers)),
  );
  request.pipe(onward);
});
await once(service.listen(0, '127.0.0.1'), 'listening');
const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;

const rows: string[][] = [];
for (const library of ['playwright', 'puppeteer']) {
  const early = ['undici', 'ws', 'p-retry', `${library}-core`].join();
  const figures = { lazy: [] as number[], early: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.lazy.push(await firstLease(library, ''));
    figures.early.push(await firstLease(library, early));
  }
  const [lazy, before] = [median(figures.lazy), median(figures.early)];
  rows.push([
    library,
    `${lazy.toFixed(0)} ms`,
    `${before.toFixed(0)} ms`,
    `${(lazy - before).toFixed(0)} ms`,
  ]);
}
const head = ['first lease', 'imports as needed', 'all imported before', 'not hidden'];
console.log(`A browser is granted ${WAIT} ms after it was asked for.`);
printTable(head, rows);
service.close();
await served[Symbol.asyncDispose]();
process.exit();

/** Milliseconds from the call to a usable page, in a process of its own. */
async function firstLease(library: string, early: string): Promise<number> {
  const env = {
    ...process.env,
    BROWSER_POOL_BASE_URL: baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: served.service.token,
  };
  calledAt = performance.now();
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, library, early], { env });
  if (process.env['DETAILS']) console.log(library, early, (arrivedAt - calledAt).toFixed(0), stdout.trim());
  return Number(stdout);
}
