/**
 * `npm run bench -- callers`: 40 calls in one or several processes at a service that has 4 places and refuses at once: acquire requests for
 * each lease, and the 95th percentile of the waits against that of places which are never free. Then the leases of a second at a service that
 * never refuses, and the memory of calls that wait, and the
 * time until all of them have ended after an abort. BENCH_PEER names the folder of another clone, in which `npm run build` has run, to
 * compare with. RUNS (default 3).
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PlayedBrowser } from '../support/played-browser.js';
import { median, printTable, setting } from './bench.js';

const CALLS = 40;
const PLACES = 4;
const MANY = 4000;
const RUNS = setting('RUNS', 3);
const WAITING = fileURLToPath(new URL('programs/waiting-calls.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('programs/callers.mjs', import.meta.url));
const HERE = fileURLToPath(new URL('../..', import.meta.url));
const PEER = process.env['BENCH_PEER'];
/** Processes, and ms for which a session is held. 0: 500 to 2000. */
const CASES = [
  [1, 0],
  [4, 0],
  [8, 0],
  [2, 300],
] as const;

const versions = PEER ? { 'the other version': PEER, 'this version': HERE } : { 'this version': HERE };
const rows: (string | number)[][] = [];
for (const [processes, hold] of CASES) {
  for (const [version, folder] of Object.entries(versions)) {
    const runs: Awaited<ReturnType<typeof measure>>[] = [];
    for (let run = 0; run < RUNS; run++) runs.push(await measure(folder, processes, hold, run));
    const shown = (figure: keyof (typeof runs)[number]) => {
      const values = runs.map((one) => one[figure]);
      return `${median(values).toFixed(2)} (${values.map((value) => value.toFixed(2)).join(', ')})`;
    };
    const length = hold === 0 ? '0.5 to 2 s' : `${hold / 1000} s`;
    rows.push([processes, length, version, shown('requests'), shown('wait')]);
  }
}
printTable(['processes', 'leases of', '', 'requests a lease', 'p95 of the waits to the ideal'], rows);

const large: (string | number)[][] = [];
for (const waits of ['asked', 'never']) {
  for (const [version, folder] of Object.entries(versions)) {
    const speeds: number[] = [];
    for (let run = 0; run < RUNS; run++) speeds.push(await speedOf(folder, waits));
    large.push([waits, version, Math.round(median(speeds)), speeds.map(Math.round).join(', ')]);
  }
}
printTable(['a service that never refuses; who waits', '', 'leases a second', 'runs'], large);

const waiting: (string | number)[][] = [];
for (const calls of [2500, 5000, 10_000]) {
  for (const [version, folder] of Object.entries(versions)) {
    const { stdout } = spawnSync(process.execPath, ['--expose-gc', WAITING, folder, String(calls)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { bytes, abort } = JSON.parse(stdout) as { bytes: number; abort: number };
    waiting.push([calls, version, (bytes / 1000).toFixed(1), Math.round(abort)]);
  }
}
printTable(['waiting calls', '', 'kB each', 'ms until all have ended'], waiting);

/** Leases of a second, of many calls at once in one process. */
async function speedOf(folder: string, waits: string): Promise<number> {
  await using service = await startService(Number.POSITIVE_INFINITY);
  const args = [PROGRAM, folder, service.url, MANY, 1, 1, waits].map(String);
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  const began = performance.now();
  child.stdin.write('go\n');
  await once(lines, 'line');
  return (MANY * 1000) / (performance.now() - began);
}

async function measure(folder: string, processes: number, hold: number, run: number) {
  await using service = await startService();
  const children = await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      const args = [PROGRAM, folder, service.url, CALLS / processes, hold, 17 + index + 100 * run].map(
        String,
      );
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
      const lines = createInterface({ input: child.stdout });
      await once(lines, 'line');
      return { child, lines };
    }),
  );
  const waits = await Promise.all(
    children.map(async ({ child, lines }) => {
      const answer = once(lines, 'line');
      child.stdin.write('go\n');
      const [line] = (await answer) as [string];
      return JSON.parse(line) as number[];
    }),
  );
  const sorted = waits.flat().toSorted((a, b) => a - b);
  const p95 = sorted[Math.ceil(CALLS * 0.95) - 1]!;
  // If the places were never free, the last call would begin when all others but those beside it have ended.
  const ideal = (service.busy() / PLACES) * (1 - PLACES / CALLS) * 0.95;
  return { requests: service.requests() / CALLS, wait: p95 / ideal };
}

/** A service with places that takes 20 ms to lease a session, and refuses at once when it has none. */
async function startService(places = PLACES) {
  const browser = await PlayedBrowser.start();
  const held = new Map<string, number>();
  let requests = 0;
  let busy = 0;
  let last = 0;
  const server = createServer((request, response) => {
    const answer = async () => {
      if (request.method === 'POST') {
        requests++;
        if (held.size >= places) return void response.writeHead(429).end('{}');
        const id = `session-${++last}`;
        held.set(id, performance.now());
        await sleep(20);
        return void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ id, url: browser.url }));
      }
      const id = request.url!.split('/').pop()!;
      await sleep(10);
      busy += performance.now() - held.get(id)!;
      held.delete(id);
      response.writeHead(204).end();
    };
    void answer();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    busy: () => busy,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
      await browser[Symbol.asyncDispose]();
    },
  };
}
