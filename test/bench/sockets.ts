/**
 * `npm run bench:sockets`: what the library's own websocket costs the drivers. Each driver connects to one Chromium
 * with its own websocket and over ours, in turn, in one run; the figures stand in src/connect/README.md.
 * ROUNDS (default 15) sets how often.
 */
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { openRelay } from '../../src/connect/relay.js';
import { Socket } from '../../src/connect/socket.js';
import { socketTransport } from '../../src/connect/transport.js';
import { startLocalPool } from '../../src/local.js';
import { realSession } from '../support/real-session.js';
import { median, printTable } from './figures.js';

const ROUNDS = Number(process.env['ROUNDS'] ?? 15);
const CALLS = 50;
const BYTES = 5 * 1024 * 1024;

interface Connected {
  evaluate: (script: string) => Promise<unknown>;
  end: () => Promise<unknown>;
}

type Connect = (url: string) => Promise<Connected>;

const DRIVERS: Record<string, { own: Connect; ours: Connect }> = {
  'Playwright over CDP': {
    own: (url) => connectPlaywright(url),
    ours: async (url) => {
      const socket = await Socket.open(url, AbortSignal.timeout(10_000));
      const relay = await openRelay(socket);
      const connected = await connectPlaywright(relay.url).finally(relay.close);
      return withSocket(connected, socket);
    },
  },
  'Puppeteer over CDP': {
    own: (url) => connectPuppeteer({ browserWSEndpoint: url }),
    ours: async (url) => {
      const socket = await Socket.open(url, AbortSignal.timeout(10_000));
      return withSocket(await connectPuppeteer({ transport: socketTransport(socket, 'cdp') }), socket);
    },
  },
};

type Figure = 'connect' | 'evaluate' | 'large';
type Figures = Record<Figure, number[]>;

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
const url = String((await realSession(local))['cdp_ws_url']);
const rows: string[][] = [];
for (const [driver, { own, ours }] of Object.entries(DRIVERS)) {
  const figures = { own: noFigures(), ours: noFigures() };
  await measure(own, noFigures());
  await measure(ours, noFigures());
  for (let round = 0; round < ROUNDS; round++) {
    // Taking turns, and each first as often as the other: a busy moment meets both.
    const turns = round % 2 === 0 ? (['own', 'ours'] as const) : (['ours', 'own'] as const);
    for (const turn of turns) await measure(turn === 'own' ? own : ours, figures[turn]);
  }
  for (const [figure, name] of [
    ['connect', 'connect to a usable page'],
    ['evaluate', `page.evaluate, there and back (of ${CALLS})`],
    ['large', `a message of ${BYTES / 1024 / 1024} MB`],
  ] as const) {
    const [before, after] = [median(figures.own[figure]), median(figures.ours[figure])];
    rows.push([
      driver,
      name,
      `${before.toFixed(2)} ms`,
      `${after.toFixed(2)} ms`,
      (after / before).toFixed(2),
    ]);
  }
}
printTable(['driver', `median of ${ROUNDS} rounds`, "driver's own websocket", 'ours', 'ratio'], rows);
process.exit();

async function measure(connect: Connect, figures: Figures): Promise<void> {
  const connected = await timed(figures.connect, () => connect(url));
  for (let call = 0; call < CALLS; call++) {
    await timed(figures.evaluate, () => connected.evaluate('1 + 1'));
  }
  for (let call = 0; call < 2; call++) {
    await timed(figures.large, () => connected.evaluate(`'x'.repeat(${BYTES})`));
  }
  await connected.end();
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const value = await work();
  times.push(performance.now() - began);
  return value;
}

async function connectPlaywright(endpoint: string): Promise<Connected> {
  const browser = await chromium.connectOverCDP(endpoint);
  const page = browser.contexts()[0]!.pages()[0]!;
  return { evaluate: (script) => page.evaluate(script), end: () => browser.close() };
}

async function connectPuppeteer(options: Parameters<typeof puppeteer.connect>[0]): Promise<Connected> {
  const browser = await puppeteer.connect({ ...options, defaultViewport: null });
  const [page] = await browser.pages();
  return { evaluate: (script) => page!.evaluate(script), end: () => browser.disconnect() };
}

function withSocket({ evaluate, end }: Connected, socket: Socket): Connected {
  return {
    evaluate,
    end: async () => {
      socket.close('closed-by-us');
      await end();
      await socket.ended;
    },
  };
}

function noFigures(): Figures {
  return { connect: [], evaluate: [], large: [] };
}
