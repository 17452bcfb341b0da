/**
 * `npm run compare`: the same faults on the public service's own SDK with Playwright by hand, as its docs show it, and
 * on this library. What was granted, what came back and what is lost is counted at the server. Wants `dist/`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { printTable } from './figures.js';

/** Milliseconds that both may wait for a browser, and that a callback may take where a limit is set. */
const WAIT = 3000;
const LIMIT = 15_000;
/** Milliseconds after which a lease that has not come back is lost. */
const PATIENCE = 6000;

/** The service, the browser, and the road between. */
class Ground {
  readonly service: FakeService;
  readonly road: FaultRoad;
  readonly granted: string[] = [];
  readonly controller = new AbortController();
  /** Requests of which the caller was told that they may have leased a browser. */
  told = 0;
  readonly #browser: Record<string, unknown>;

  constructor(service: FakeService, road: FaultRoad, browser: Record<string, unknown>) {
    this.service = service;
    this.road = road;
    this.#browser = browser;
    service.script('acquire', this.grant);
  }

  /** Hands out a browser. */
  readonly grant = (response: ServerResponse): void => reply(response, { status: 200, json: this.lease() });

  /** Writes a lease into the books, and gives what the answer is to say of it. */
  lease(): object {
    const sessionId = `s${this.granted.length + 1}`;
    this.granted.push(sessionId);
    return {
      ...this.#browser,
      session_id: sessionId,
      cdp_ws_url: this.road.to(String(this.#browser['cdp_ws_url'])),
    };
  }

  get lost(): number {
    const released = new Set(this.service.released);
    return this.granted.filter((sessionId) => !released.has(sessionId)).length;
  }
}

interface Case {
  fault: string;
  arrange?: (ground: Ground) => void;
  work?: (page: Page, ground: Ground) => Promise<unknown>;
  /** Limit of the callback, in ms. */
  limit?: number;
  /** What the call should end in. */
  due: 'ok' | 'error';
  /** Instead of a call: a process, and how it ends. */
  program?: { ending: string; signal?: NodeJS.Signals };
}

const title = (page: Page) => page.title();
const onceThen =
  (first: (response: ServerResponse, ground: Ground) => void) =>
  (ground: Ground): void =>
    ground.service.script('acquire', (response) => first(response, ground), ground.grant);

const CASES: readonly Case[] = [
  { fault: 'none', due: 'ok' },
  {
    fault: `each grant comes after the client's time-out`,
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
    arrange: onceThen((response) => reply(response, { status: 503, text: '' })),
    due: 'ok',
  },
  {
    fault: 'acquire: 429 with Retry-After: 1, then a browser',
    arrange: onceThen((response) => reply(response, { status: 429, headers: { 'retry-after': '1' } })),
    due: 'ok',
  },
  {
    fault: 'acquire: 204 (none free yet), then a browser',
    arrange: onceThen((response) => reply(response, { status: 204 })),
    due: 'ok',
  },
  {
    fault: 'acquire: granted, and the connection breaks before the answer',
    arrange: onceThen((response, ground) => {
      ground.lease();
      response.destroy();
    }),
    due: 'ok',
  },
  {
    fault: 'acquire: the grant breaks off behind its session_id',
    arrange: onceThen((response, ground) => {
      const { session_id, ...rest } = ground.lease() as Record<string, unknown>;
      const text = JSON.stringify({ session_id, ...rest });
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
      response.write(text.slice(0, 60));
      setTimeout(() => response.destroy(), 100);
    }),
    due: 'error',
  },
  {
    fault: 'the caller aborts while it waits, the grant comes after that',
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
    fault: "the browser's websocket is refused (403), another browser is fine",
    arrange: ({ road }) => road.play(refuse(403), join),
    due: 'ok',
  },
  {
    fault: 'the callback throws',
    work: () => Promise.reject(new Error('mine')),
    due: 'error',
  },
  {
    fault: 'the callback never settles (limit 1 s)',
    work: () => new Promise(() => {}),
    limit: 1000,
    due: 'error',
  },
  {
    fault: 'the websocket is cut, and the callback waits for its page',
    work: async (page, { road }) => {
      setTimeout(() => road.lose('reset'), 200);
      await page.evaluate('new Promise(() => {})');
    },
    limit: LIMIT,
    due: 'error',
  },
  {
    fault: 'the websocket falls silent (half-open)',
    work: async (page, { road }) => {
      road.lose('silence');
      await page.evaluate('1 + 1');
    },
    limit: LIMIT,
    due: 'error',
  },
  {
    fault: 'the websocket is cut, the callback swallows the error and returns',
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
  { fault: 'process.exit() in the callback', program: { ending: 'exit' }, due: 'error' },
  { fault: 'SIGTERM during the callback', program: { ending: 'hang', signal: 'SIGTERM' }, due: 'error' },
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
// A hand-written run that is cut off leaves rejections behind: they are counted, and must not end this comparison.
let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
const totals = CONTENDERS.map(() => ({ granted: 0, lost: 0, wrong: 0, unhandled: 0 }));
const rows: string[][] = [];
for (const one of CASES) {
  const row = [one.fault];
  for (const [index, contender] of CONTENDERS.entries()) {
    const before = unhandled;
    const { cell, granted, lost, isWrong } = await judge(contender, one);
    totals[index]!.unhandled += unhandled - before;
    row.push(cell);
    totals[index]!.granted += granted;
    totals[index]!.lost += lost;
    totals[index]!.wrong += Number(isWrong);
  }
  rows.push(row);
  console.log(row.join(' | '));
}
const sums = totals.map(
  ({ granted, lost, wrong, unhandled: rejections }) =>
    `${granted} granted, **${lost} lost**, ${wrong} outcomes not as due (!), ${rejections} unhandled rejections`,
);
rows.push(['**in all**', ...sums]);
printTable(['fault', ...CONTENDERS.map(({ name }) => name)], rows);
process.exit();

async function judge(contender: Contender, one: Case) {
  await using service = await FakeService.start();
  await using road = await FaultRoad.start();
  const ground = new Ground(service, road, browser);
  one.arrange?.(ground);
  const began = performance.now();
  const outcome = await (
    one.program ? runProgram(contender, ground, one.program) : contender.call(ground, one)
  ).then(
    () => ({ status: 'ok', text: 'ok' }),
    (error: unknown) => ({ status: 'error', text: nameOf(error) }),
  );
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  // Grants may still be under way.
  await sleep(2000);
  const giveUp = performance.now() + PATIENCE;
  while (ground.lost > 0 && performance.now() < giveUp) await sleep(50);
  const { lost, granted, told } = ground;
  const isWrong = outcome.status !== one.due;
  const wrong = isWrong ? ' (!)' : '';
  const known = told > 0 ? ` (${told} told as unknown)` : '';
  const fate =
    lost > 0 ? `**${lost} of ${granted.length} lost**${known}` : `${granted.length} granted, all back`;
  return { cell: `${fate}; ${outcome.text}${wrong}, ${seconds} s`, granted: granted.length, lost, isWrong };
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const name =
    error.constructor.name === 'Error' && error.name === 'Error' ? error.message : error.constructor.name;
  return name.split('\n')[0]!.slice(0, 60);
}

/** By hand: acquire, connect, call, close, release, each in its `finally`. */
async function callSdk(ground: Ground, { work = title, limit }: Case): Promise<unknown> {
  const { service, controller } = ground;
  const { signal } = controller;
  const client = new Kernel({
    apiKey: 'compare-token',
    baseURL: service.baseUrl,
    timeout: WAIT,
    logLevel: 'off',
  });
  const session = await client.browserPools.acquire('test', { acquire_timeout_seconds: 2 }, { signal });
  try {
    const connected = await chromium.connectOverCDP(session.cdp_ws_url);
    try {
      const context = connected.contexts()[0]!;
      const page = context.pages()[0] ?? (await context.newPage());
      return await within(limit, work(page, ground));
    } finally {
      await connected.close();
    }
  } finally {
    await client.browserPools.release('test', { session_id: session.session_id });
  }
}

async function within<T>(limit: number | undefined, work: Promise<T>): Promise<T> {
  if (limit === undefined) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${limit} ms`)), limit);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function callOurs(ground: Ground, { work = title, limit }: Case): Promise<unknown> {
  await using pool = new BrowserPool('test', { baseUrl: ground.service.baseUrl, token: 'compare-token' });
  const { value } = await withPooledBrowser(pool, ({ page }) => work(page, ground), {
    acquireTimeout: WAIT,
    signal: ground.controller.signal,
    onEvent: ({ type }) => {
      if (type === 'outcome-unknown') ground.told++;
    },
    ...(limit !== undefined && { timeout: limit }),
  });
  return value;
}

async function runProgram(
  { program }: Contender,
  { service }: Ground,
  { ending, signal }: NonNullable<Case['program']>,
): Promise<void> {
  const env = {
    ...process.env,
    BROWSER_POOL_BASE_URL: service.baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: 'compare-token',
  };
  const child = spawn(process.execPath, [program, ending], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([once(child.stdout, 'data'), exited]);
  if (signal) child.kill(signal);
  const [code, endSignal] = await exited;
  throw new Error(`exit ${code ?? endSignal}`);
}
