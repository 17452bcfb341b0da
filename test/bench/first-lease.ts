/**
 * `npm run bench:first-lease`: the first lease of a process, from a service that grants it after WAIT ms (default 300).
 * The library imports undici, ws, p-retry and the automation library during that wait. Compared with a process that
 * has imported them before. ROUNDS (default 15). Needs `dist/`.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { FakeService, reply } from '../support/fake-service.js';
import { compare, printComparison, servePool, setting } from './bench.js';
import { rawClient } from './ways.js';

const WAIT = setting('WAIT', 300);
const PROGRAM = fileURLToPath(new URL('programs/first-lease.mjs', import.meta.url));
const EARLY = 'all imported before';

await using served = await servePool();
const { acquire, release } = rawClient(served.service);
await using service = await FakeService.start();
service.script('acquire', async (response) => {
  const [json] = await Promise.all([acquire(), sleep(WAIT)]);
  reply(response, { status: 200, json });
});
service.script('release', async (response, { body }) => {
  await release(String(body!['session_id']));
  reply(response, { status: 204 });
});

const rows: string[][] = [];
for (const library of ['playwright', 'puppeteer']) {
  const early = ['undici', 'ws', 'p-retry', `${library}-core`].join();
  const ways = {
    'imports as needed': async () => ({ wait: await firstLease(library, '') }),
    [EARLY]: async () => ({ wait: await firstLease(library, early) }),
  };
  const subject = `first lease, ${library}, granted after ${WAIT} ms`;
  const rounds = setting('ROUNDS', 15);
  rows.push(...(await compare({ subject, ways, units: { wait: 'ms' }, peers: [EARLY], rounds, warmUp: 0 })));
}
printComparison(rows, [EARLY]);
await service.close();
await served[Symbol.asyncDispose]();
process.exit();

/** Milliseconds from the call to a usable page, in a new process. */
async function firstLease(library: string, early: string): Promise<number> {
  const { baseUrl, token } = service.options;
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, library, early], { env });
  return Number(stdout);
}
