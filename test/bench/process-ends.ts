/**
 * Part of `npm run simulate`: processes end in every way and in each stage of a lease, COUNT times each (default 10). The
 * service records whether and when the browser was released. ONLY is a part of the
 * names of the ends to measure. Needs `dist/`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLocalPool } from '../../src/local.js';
import { FakeService, found, reply, type SeenRequest } from '../support/fake-service.js';
import { realSession } from '../support/real-session.js';
import { median, printTable, setting } from './bench.js';

const COUNT = setting('COUNT', 10);
const AT_ONCE = setting('AT_ONCE', 4);
/** Milliseconds to wait for a release after the process has ended. */
const PATIENCE = 60_000;
const programPath = (name: string) =>
  fileURLToPath(new URL(`../process/programs/${name}.mjs`, import.meta.url));

interface Ending {
  name: string;
  argument: string;
  /** For the program that stays in a stage of a lease: its further argument. */
  stage?: string;
  /** Milliseconds until the service leases a browser. */
  grantsAfter?: number;
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
  ...['connect', 'callback', 'clean', 'release'].flatMap((argument) =>
    (['SIGTERM', 'SIGKILL'] as const).map((signal) => ({
      name: `${signal}, stage ${argument}`,
      argument,
      stage: signal === 'SIGKILL' ? 'guarded' : 'plain',
      signal,
      when: argument === 'release' ? 'release' : `at ${argument}`,
      expected: signal,
    })),
  ),
  ...[500, 2000, 6000, 20_000].flatMap((grantsAfter) =>
    (grantsAfter > 500 ? (['SIGKILL'] as const) : (['SIGTERM', 'SIGKILL'] as const)).map((signal) => ({
      name: `${signal}, acquire request open, lease after ${grantsAfter} ms`,
      argument: 'acquire',
      stage: `${signal === 'SIGKILL' ? 'guarded ' : ''}poll=25000`,
      grantsAfter,
      signal,
      when: 'acquire',
      expected: signal,
    })),
  ),
];

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
await using service = await FakeService.start();
const browser = await realSession(local);
/** The sessions that were granted, by the token of the process: each process has its own. */
const granted = new Map<string, string>();
const releasedAt = new Map<string, number>();
/** Whether each release request of a session lets the service lease it again. */
const releases = new Map<string, boolean[]>();
/** The sessions whose release the service has processed. */
const processed = new Set<string>();
const tagsOf = new Map<string, unknown>();
let processes = 0;
/** What a process waits for at the service, by its token: called when the request of that name arrives. */
const awaited = new Map<string, { route: string; arrived: () => void }>();
const endings = new Map<string, Ending>();
const tokenOf = ({ headers }: SeenRequest) => headers.authorization!.replace('Bearer ', '');

function arrive(request: SeenRequest, route: string): void {
  const waiting = awaited.get(tokenOf(request));
  if (waiting?.route === route) waiting.arrived();
}

service.script('acquire', async (response, request) => {
  const token = tokenOf(request);
  arrive(request, 'acquire');
  // Also after the end of the connection.
  await sleep(endings.get(token)?.grantsAfter ?? 0);
  const sessionId = `s${granted.size + 1}`;
  granted.set(token, sessionId);
  const tags = request.body?.['tags'];
  tagsOf.set(sessionId, tags);
  reply(response, { status: 200, json: { ...browser, session_id: sessionId, tags } });
});
// Until it has processed the release, the service shows whose lease the session is.
service.script('session', (response, { path }) => {
  const sessionId = path.split('/').at(-1)!;
  const tags = processed.has(sessionId) ? {} : tagsOf.get(sessionId);
  reply(response, { status: 200, json: { ...browser, session_id: sessionId, tags } });
});
service.script('search', (response, request) => {
  const sessionId = granted.get(tokenOf(request));
  void found(...(sessionId === undefined ? [] : [sessionId]))(response, request);
});
service.script('release', (response, request) => {
  const sessionId = String(request.body?.['session_id']);
  arrive(request, 'release');
  const delay = endings.get(tokenOf(request))?.argument === 'release' ? 200 : 0;
  releases.set(sessionId, [...(releases.get(sessionId) ?? []), request.body?.['reuse'] === true]);
  if (!releasedAt.has(sessionId)) releasedAt.set(sessionId, performance.now());
  void sleep(delay).then(() => processed.add(sessionId));
  reply(response, { status: 204, delay });
});

const rows: (string | number)[][] = [];
const { ONLY = '' } = process.env;
for (const ending of ENDINGS.filter(({ name }) => name.includes(ONLY))) rows.push(await measure(ending));
printTable(
  ['the process ends by', 'runs', 'released', 'code or signal kept', 'ms: min', 'median', 'max'],
  rows,
);
const lost = granted.size - releasedAt.size;
console.log(`${granted.size} granted, ${releasedAt.size} released, ${lost} lost`);
const repeated = [...releases.values()].filter(({ length }) => length > 1);
// A session that is destroyed is never leased again: no repeated request can end the lease of somebody else.
const harmful = repeated.filter((requests) => requests.slice(0, -1).includes(true)).length;
console.log(
  `${repeated.length} released more than once: ${harmful} after a release for reuse, the others destroyed`,
);
const isWrong = rows.some(([, runs, released, kept]) => released !== runs || kept !== runs);
process.exitCode = lost > 0 || harmful > 0 || isWrong ? 1 : 0;

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
  endings.set(token, ending);
  const { ended, began } = await runProgram(token, ending);
  // The service may lease the browser after the end.
  const sessionId = () => granted.get(token) ?? 'none';
  const giveUp = performance.now() + PATIENCE;
  while (!releasedAt.has(sessionId()) && performance.now() < giveUp) await sleep(5);
  const at = releasedAt.get(sessionId());
  return { released: at && Math.max(0, at - began), isKept: ended === ending.expected };
}

/** Runs a program that leases a browser, ends it in the given way, and waits for its end. `began`: when the end began. */
async function runProgram(token: string, { argument, stage, signal, when = 'leased' }: Ending) {
  const env = { ...process.env, BROWSER_POOL_BASE_URL: service.baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const child = spawn(process.execPath, [...programOf(argument, stage)], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  let output = '';
  const printed = new Promise<void>((resolve) => {
    child.stdout.on('data', (text) => (output += String(text)).includes(when) && resolve());
    awaited.set(token, { route: when, arrived: resolve });
  });
  await Promise.race([printed, exited]);
  const began = performance.now();
  if (signal) child.kill(signal);
  const [code, endSignal] = await exited;
  return { ended: code ?? endSignal, began };
}

function programOf(argument: string, stage: string | undefined): readonly string[] {
  return stage === undefined ? [programPath('leasing'), argument] : [programPath('stages'), argument, stage];
}
