/**
 * `npm run compare`: the same faults on this library, and on the public service's own SDK with Playwright as its
 * documentation shows it. The server counts the granted, released and lost leases. Needs `dist/`.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Kernel from '@onkernel/sdk';
import { chromium, type Page } from 'playwright-core';
import { BrowserPool } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import { withPooledBrowser } from '../../src/playwright.js';
import { FakeService, reply } from '../support/fake-service.js';
import { FaultRoad, join, refuse } from '../support/fault-road.js';
import { realSession } from '../support/real-session.js';
import { printTable } from './bench.js';
import { runProgram } from './run-program.js';

/** Time to wait for a browser, on both sides, in ms. */
const WAIT = 3000;
/** Timeout of a callback that has one, in ms. */
const TIMEOUT = 15_000;
/** Milliseconds after which a lease that was not released is lost. */
const PATIENCE = 6000;
const TOKEN = 'compare-token';

/** The service, the browser, and the network between them. */
class Ground {
  readonly granted: string[] = [];
  readonly controller = new AbortController();
  /** Acquire requests that were reported with an unknown outcome. */
  unknown = 0;
  readonly service: FakeService;
  readonly road: FaultRoad;
  readonly #browser: Record<string, unknown>;

  constructor(service: FakeService, road: FaultRoad, browser: Record<string, unknown>) {
    this.service = service;
    this.road = road;
    this.#browser = browser;
    service.script('acquire', this.grant);
  }

  readonly grant = (response: ServerResponse): void => reply(response, { status: 200, json: this.lease() });

  /** Records a lease, and returns its session. */
  lease(): Record<string, unknown> {
    const session_id = `s${this.granted.length + 1}`;
    this.granted.push(session_id);
    return { ...this.#browser, session_id, cdp_ws_url: this.road.to(String(this.#browser['cdp_ws_url'])) };
  }

  get lost(): number {
    return this.granted.filter((sessionId) => !this.service.released.includes(sessionId)).length;
  }
}

interface Case {
  fault: string;
  /** How the call should end. */
  due: 'ok' | 'error';
  arrange?: (ground: Ground) => void;
  work?: (page: Page, ground: Ground) => Promise<unknown>;
  /** Milliseconds that the callback may take. */
  timeout?: number;
  /** A process instead of a call, and how it ends. */
  program?: { argument: string; signal?: NodeJS.Signals };
}

const title = (page: Page) => page.title();
/** Answers the first acquire request like this, and grants a browser to all others. */
const first =
  (answer: (response: ServerResponse, ground: Ground) => void) =>
  (ground: Ground): void =>
    ground.service.script('acquire', (response) => answer(response, ground), ground.grant);

const CASES: readonly Case[] = [
  { fault: 'none', due: 'ok' },
  {
    fault: "each grant comes after the client's timeout",
    arrange: (ground) =>
      ground.service.script('acquire', async (response) => {
        const json = ground.lease();
        await sleep(WAIT + 1500);
        reply(response, { status: 200, json });
      }),
    due: 'error',
  },
  {
    fault: 'acquire: 503, then a browser',
    arrange: first((response) => reply(response, { status: 503, text: '' })),
    due: 'ok',
  },
  {
    fault: 'acquire: 429 with Retry-After: 1, then a browser',
    arrange: first((response) => reply(response, { status: 429, headers: { 'retry-after': '1' } })),
    due: 'ok',
  },
  {
    fault: 'acquire: 204 (none available yet), then a browser',
    arrange: first((response) => reply(response, { status: 204 })),
    due: 'ok',
  },
  {
    fault: 'acquire: granted, and the connection breaks before the answer',
    arrange: first((response, ground) => {
      ground.lease();
      response.destroy();
    }),
    due: 'ok',
  },
  {
    fault: 'acquire: the answer ends after its session_id',
    arrange: first((response, ground) => {
      const { session_id, ...rest } = ground.lease();
      const text = JSON.stringify({ session_id, ...rest });
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
      response.write(text.slice(0, 60));
      setTimeout(() => response.destroy(), 100);
    }),
    due: 'ok',
  },
  {
    fault: 'the caller aborts while it waits, and the grant comes later',
    arrange: (ground) => {
      setTimeout(() => ground.controller.abort(), 500);
      ground.service.script('acquire', async (response) => {
        await sleep(1000);
        ground.grant(response);
      });
    },
    due: 'error',
  },
  {
    fault: "the browser's WebSocket is refused (403), another browser works",
    arrange: ({ road }) => road.play(refuse(403), join),
    due: 'ok',
  },
  {
    fault: 'the callback throws',
    work: () => Promise.reject(new Error('mine')),
    due: 'error',
  },
  {
    fault: 'the callback never settles (timeout 1 s)',
    work: () => new Promise(() => {}),
    timeout: 1000,
    due: 'error',
  },
  {
    fault: 'the WebSocket is reset, and the callback waits for its page',
    work: async (page, { road }) => {
      setTimeout(() => road.lose('reset'), 200);
      await page.evaluate('new Promise(() => {})');
    },
    timeout: TIMEOUT,
    due: 'error',
  },
  {
    fault: 'the WebSocket goes silent (half-open)',
    work: async (page, { road }) => {
      road.lose('silence');
      await page.evaluate('1 + 1');
    },
    timeout: TIMEOUT,
    due: 'error',
  },
  {
    fault: 'the WebSocket is reset, the callback ignores the error and returns',
    work: async (page, { road }) => {
      road.lose('reset');
      await page.evaluate('1 + 1').catch(() => {});
      return 'done';
    },
    due: 'error',
  },
  {
    fault: 'release: 500 twice, then 204',
    arrange: ({ service }) => service.script('release', { status: 500 }, { status: 500 }, { status: 204 }),
    due: 'ok',
  },
  {
    fault: 'release: 503 five times, then 204',
    arrange: ({ service }) =>
      service.script('release', ...Array.from({ length: 5 }, () => ({ status: 503 })), { status: 204 }),
    due: 'ok',
  },
  { fault: 'process.exit() in the callback', program: { argument: 'exit' }, due: 'error' },
  { fault: 'SIGTERM during the callback', program: { argument: 'hang', signal: 'SIGTERM' }, due: 'error' },
];

interface Contender {
  name: string;
  call: (ground: Ground, one: Case) => Promise<unknown>;
  program: string;
}

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const CONTENDERS: readonly Contender[] = [
  { name: '@onkernel/sdk', call: callSdk, program: path('programs/sdk-leasing.mjs') },
  { name: 'pooled-browser', call: callOurs, program: path('../process/programs/leasing.mjs') },
];

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
const browser = await realSession(local);
// Interrupted code without this library leaves unhandled rejections. They are counted, and must not end this
// comparison.
let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
const totals = CONTENDERS.map(() => ({ granted: 0, lost: 0, wrong: 0, unhandled: 0 }));
const rows: string[][] = [];
for (const one of CASES) {
  const row = [one.fault];
  for (const [index, contender] of CONTENDERS.entries()) {
    const total = totals[index]!;
    total.unhandled -= unhandled;
    const { cell, granted, lost, isWrong } = await judge(contender, one);
    total.unhandled += unhandled;
    total.granted += granted;
    total.lost += lost;
    total.wrong += Number(isWrong);
    row.push(cell);
  }
  rows.push(row);
  console.log(row.join(' | '));
}
const sums = totals.map(
  ({ granted, lost, wrong, unhandled: rejections }) =>
    `${granted} granted, **${lost} lost**, ${wrong} wrong outcomes (!), ${rejections} unhandled rejections`,
);
printTable(['fault', ...CONTENDERS.map(({ name }) => name)], [...rows, ['**in all**', ...sums]]);
process.exit();

async function judge({ call, program }: Contender, one: Case) {
  await using service = await FakeService.start();
  await using road = await FaultRoad.start();
  const ground = new Ground(service, road, browser);
  one.arrange?.(ground);
  const began = performance.now();
  const { status, text } = await (
    one.program ? endProcess(program, ground, one.program) : call(ground, one)
  ).then(
    () => ({ status: 'ok', text: 'ok' }),
    (error: unknown) => ({ status: 'error', text: nameOf(error) }),
  );
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  // A lease may still be under way.
  await sleep(2000);
  const giveUp = performance.now() + PATIENCE;
  while (ground.lost > 0 && performance.now() < giveUp) await sleep(50);
  const { lost, unknown, granted } = ground;
  const isWrong = status !== one.due;
  const known = unknown > 0 ? ` (${unknown} reported as unknown)` : '';
  const fate =
    lost > 0 ? `**${lost} of ${granted.length} lost**${known}` : `${granted.length} granted, all released`;
  const cell = `${fate}; ${text}${isWrong ? ' (!)' : ''}, ${seconds} s`;
  return { cell, granted: granted.length, lost, isWrong };
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name } = error.constructor;
  return (name === 'Error' && error.name === 'Error' ? error.message : name).split('\n')[0]!.slice(0, 60);
}

/** Without this library: acquire, connect, call, close and release, with `finally`. */
async function callSdk(ground: Ground, { work = title, timeout }: Case): Promise<unknown> {
  const client = new Kernel({
    apiKey: TOKEN,
    baseURL: ground.service.baseUrl,
    timeout: WAIT,
    logLevel: 'off',
  });
  const { signal } = ground.controller;
  const session = await client.browserPools.acquire('test', { acquire_timeout_seconds: 2 }, { signal });
  try {
    const connected = await chromium.connectOverCDP(session.cdp_ws_url);
    try {
      const context = connected.contexts()[0]!;
      const page = context.pages()[0] ?? (await context.newPage());
      return await within(timeout, work(page, ground));
    } finally {
      await connected.close();
    }
  } finally {
    await client.browserPools.release('test', { session_id: session.session_id });
  }
}

async function within<T>(timeout: number | undefined, work: Promise<T>): Promise<T> {
  if (timeout === undefined) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${timeout} ms`)), timeout);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function callOurs(ground: Ground, { work = title, timeout }: Case): Promise<unknown> {
  await using pool = new BrowserPool('test', { baseUrl: ground.service.baseUrl, token: TOKEN });
  const { value } = await withPooledBrowser(pool, ({ page }) => work(page, ground), {
    acquireTimeout: WAIT,
    signal: ground.controller.signal,
    onEvent: ({ type }) => void (type === 'outcome-unknown' && ground.unknown++),
    ...(timeout !== undefined && { timeout }),
  });
  return value;
}

async function endProcess(
  program: string,
  { service }: Ground,
  ending: NonNullable<Case['program']>,
): Promise<void> {
  const { ended } = await runProgram(program, { baseUrl: service.baseUrl, token: TOKEN }, ending);
  throw new Error(`exit ${ended}`);
}
