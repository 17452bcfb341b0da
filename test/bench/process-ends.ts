/**
 * Part of `npm run simulate`: processes that hold a lease end in every way there is, COUNT times each (default 100),
 * and the service tells whether and when it got the browser back. Wants `dist/`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from '../../src/local.js';
import { FakeService, reply } from '../support/fake-service.js';
import { realSession } from '../support/real-session.js';
import { median, printTable } from './figures.js';

const COUNT = Number(process.env['COUNT'] ?? 100);
const AT_ONCE = 2;
/** Milliseconds to wait for a release once the process is gone. */
const PATIENCE = 15_000;
const PROGRAM = fileURLToPath(new URL('../process/programs/leasing.mjs', import.meta.url));

interface Ending {
  name: string;
  /** What the program is told to do. */
  argument: string;
  /** What it is sent, once it has printed `when`. */
  signal?: NodeJS.Signals;
  when?: string;
  /** How it must end: exit code or signal, as without us. */
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
  { name: 'event loop runs empty', argument: 'empty', expected: 0 },
  { name: 'SIGKILL, watch: true', argument: 'watched', signal: 'SIGKILL', expected: 'SIGKILL' },
];

interface Result {
  /** Milliseconds from the end's beginning to the release; `undefined`: none came. */
  released?: number;
  ended: number | NodeJS.Signals | null;
}

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
await using service = await FakeService.start();
const browser = await realSession(local);
const grantedAt = new Map<string, number>();
const releasedAt = new Map<string, number>();
/** Who asked, by the token: each process has its own. */
const sessionOfToken = new Map<string, string>();
let processes = 0;
service.script('acquire', (response, { headers }) => {
  const sessionId = `s${grantedAt.size + 1}`;
  grantedAt.set(sessionId, performance.now());
  sessionOfToken.set(headers.authorization!.replace('Bearer ', ''), sessionId);
  reply(response, { status: 200, json: { ...browser, session_id: sessionId } });
});
service.script('release', (response, { body }) => {
  releasedAt.set(String(body?.['session_id']), performance.now());
  reply(response, { status: 204 });
});

const rows: (string | number)[][] = [];
for (const ending of ENDINGS) {
  const results: Result[] = [];
  const runNext = async () => {
    while (results.length < COUNT) {
      const index = results.push({ ended: null }) - 1;
      results[index] = await runOnce(ending);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  const times = results.flatMap(({ released }) => released ?? []);
  const asExpected = results.filter(({ ended }) => ended === ending.expected).length;
  const figures = [Math.min(...times), median(times), Math.max(...times)].map(Math.round);
  rows.push([ending.name, COUNT, times.length, asExpected, ...figures]);
  console.log(
    `${ending.name}: ${times.length} of ${COUNT} released, ${asExpected} ended as without us, ms ${figures.join('/')}`,
  );
}
printTable(
  ['the process ends by', 'runs', 'released', 'code or signal kept', 'ms: min', 'median', 'max'],
  rows,
);
const lost = grantedAt.size - releasedAt.size;
console.log(`${grantedAt.size} granted, ${releasedAt.size} released, ${lost} lost`);
const isWrong = rows.some(([, runs, released, kept]) => released !== runs || kept !== runs);
process.exitCode = lost > 0 || isWrong ? 1 : 0;

async function runOnce({ argument, signal, when = 'leased' }: Ending): Promise<Result> {
  const token = `process-ends-token-${++processes}`;
  const env = { ...process.env, BROWSER_POOL_BASE_URL: service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const child = spawn(process.execPath, [PROGRAM, argument], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([printed(child, when), exited]);
  const began = performance.now();
  if (signal) child.kill(signal);
  const [code, endSignal] = await exited;
  const sessionId = sessionOfToken.get(token) ?? 'none';
  const giveUp = performance.now() + PATIENCE;
  while (!releasedAt.has(sessionId) && performance.now() < giveUp) await sleep(5);
  const at = releasedAt.get(sessionId);
  return { ended: code ?? endSignal, ...(at !== undefined && { released: Math.max(0, at - began) }) };
}

async function printed(child: ChildProcess, text: string): Promise<void> {
  let output = '';
  for await (const chunk of child.stdout!.iterator({ destroyOnReturn: false })) {
    output += String(chunk);
    if (output.includes(text)) return;
  }
}
