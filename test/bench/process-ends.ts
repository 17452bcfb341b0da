/**
 * Part of `npm run simulate`: processes with a lease end in every way, COUNT times each (default 100). The service
 * records whether and when the browser was released. Needs `dist/`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from '../../src/local.js';
import { FakeService, reply } from '../support/fake-service.js';
import { realSession } from '../support/real-session.js';
import { median, printTable, setting } from './bench.js';

const COUNT = setting('COUNT', 100);
const AT_ONCE = 2;
/** Milliseconds to wait for a release after the process has ended. */
const PATIENCE = 15_000;
const PROGRAM = fileURLToPath(new URL('../process/programs/leasing.mjs', import.meta.url));

interface Ending {
  name: string;
  argument: string;
  signal?: NodeJS.Signals;
  /** Output after which the signal is sent. */
  when?: string;
  /** Exit code or signal, the same as without this library. */
  expected: number | NodeJS.Signals;
}

const ENDINGS: readonly Ending[] = [
  { name: 'SIGINT', argument: 'hang', signal: 'SIGINT', expected: 'SIGINT' },
  { name: 'SIGTERM', argument: 'hang', signal: 'SIGTERM', expected: 'SIGTERM' },
  { name: 'SIGHUP', argument: 'hang', signal: 'SIGHUP', expected: 'SIGHUP' },
  { name: 'SIGTERM, own handler', argument: 'own-handler', signal: 'SIGTERM', when: 'ready', expected: 3 },
  { name: 'process.exit', argument: 'exit', expected: 7 },
  { name: 'uncaughtException', argument: 'throw', expected: 1 },
  { name: 'unhandledRejection', argument: 'reject', expected: 1 },
  { name: 'empty event loop', argument: 'empty', expected: 0 },
  { name: 'SIGKILL, releaseOnCrash: true', argument: 'watched', signal: 'SIGKILL', expected: 'SIGKILL' },
];

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
await using service = await FakeService.start();
const browser = await realSession(local);
/** The sessions that were granted, by the token of the process: each process has its own. */
const granted = new Map<string, string>();
const releasedAt = new Map<string, number>();
let processes = 0;
service.script('acquire', (response, { headers }) => {
  const sessionId = `s${granted.size + 1}`;
  granted.set(headers.authorization!.replace('Bearer ', ''), sessionId);
  reply(response, { status: 200, json: { ...browser, session_id: sessionId } });
});
service.script('release', (response, { body }) => {
  releasedAt.set(String(body?.['session_id']), performance.now());
  reply(response, { status: 204 });
});

const rows: (string | number)[][] = [];
for (const ending of ENDINGS) rows.push(await measure(ending));
printTable(
  ['the process ends by', 'runs', 'released', 'code or signal kept', 'ms: min', 'median', 'max'],
  rows,
);
const lost = granted.size - releasedAt.size;
console.log(`${granted.size} granted, ${releasedAt.size} released, ${lost} lost`);
const isWrong = rows.some(([, runs, released, kept]) => released !== runs || kept !== runs);
process.exitCode = lost > 0 || isWrong ? 1 : 0;

async function measure(ending: Ending): Promise<(string | number)[]> {
  const times: number[] = [];
  let [begun, kept] = [0, 0];
  const runNext = async () => {
    while (begun++ < COUNT) {
      const { released, isKept } = await runOnce(ending);
      if (released !== undefined) times.push(released);
      kept += Number(isKept);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  const row = [
    times.length,
    kept,
    ...[Math.min(...times), median(times), Math.max(...times)].map(Math.round),
  ];
  console.log(`${ending.name}: ${row.join(' | ')}`);
  return [ending.name, COUNT, ...row];
}

/** `released`: milliseconds from the beginning of the end to the release; `undefined` if there was no release. */
async function runOnce(ending: Ending): Promise<{ released: number | undefined; isKept: boolean }> {
  const token = `process-ends-token-${++processes}`;
  const { ended, began } = await runProgram(token, ending);
  const sessionId = granted.get(token) ?? 'none';
  const giveUp = performance.now() + PATIENCE;
  while (!releasedAt.has(sessionId) && performance.now() < giveUp) await sleep(5);
  const at = releasedAt.get(sessionId);
  return { released: at && Math.max(0, at - began), isKept: ended === ending.expected };
}

/** Runs a program that leases a browser, ends it in the given way, and waits for its end. `began`: when the end began. */
async function runProgram(token: string, { argument, signal, when = 'leased' }: Ending) {
  const env = { ...process.env, BROWSER_POOL_BASE_URL: service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const child = spawn(process.execPath, [PROGRAM, argument], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  let output = '';
  const printed = new Promise<void>((resolve) => {
    child.stdout.on('data', (text) => (output += String(text)).includes(when) && resolve());
  });
  await Promise.race([printed, exited]);
  const began = performance.now();
  if (signal) child.kill(signal);
  const [code, endSignal] = await exited;
  return { ended: code ?? endSignal, began };
}
