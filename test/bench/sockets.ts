/**
 * `npm run bench:sockets`: the cost of this library's WebSocket for the automation libraries. Each connects to one
 * Chromium with its own WebSocket and through ours; the figures are in src/connect/README.md. ROUNDS (default 15).
 */
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { openSingleEndpoint } from '../../src/connect/loopback-endpoint.js';
import { Socket } from '../../src/connect/socket.js';
import { socketTransport } from '../../src/connect/transport.js';
import { startLocalPool } from '../../src/local.js';
import { realSession } from '../support/real-session.js';
import { compare, median, printComparison, setting, time } from './bench.js';

const CALLS = 50;
const BYTES = 5 * 1024 * 1024;
const OWN = 'own WebSocket';

interface Connected {
  evaluate: (script: string) => Promise<unknown>;
  end: () => Promise<unknown>;
}

type Connect = (url: string) => Promise<Connected>;

const DRIVERS: Record<string, { own: Connect; ours: Connect }> = {
  'Playwright over CDP': {
    own: connectPlaywright,
    ours: overOurs(async (socket) => {
      const { url } = await openSingleEndpoint(socket);
      return connectPlaywright(url);
    }),
  },
  'Puppeteer over CDP': {
    own: (url) => connectPuppeteer({ browserWSEndpoint: url }),
    ours: overOurs((socket) => connectPuppeteer({ transport: socketTransport(socket, 'cdp') })),
  },
};

await using local = await startLocalPool({ pools: [{ name: 'test', size: 1 }] });
const url = String((await realSession(local))['cdp_ws_url']);
const rows: string[][] = [];
for (const [subject, { own, ours }] of Object.entries(DRIVERS)) {
  const ways = { [OWN]: () => measure(own), ours: () => measure(ours) };
  const units = { connect: 'ms', 'page.evaluate': 'ms', [`a message of ${BYTES / 1024 / 1024} MB`]: 'ms' };
  rows.push(...(await compare({ subject, ways, units, peers: [OWN], rounds: setting('ROUNDS', 15) })));
}
printComparison(rows, [OWN]);
process.exit();

async function measure(connect: Connect): Promise<Record<string, number>> {
  const began = performance.now();
  const { evaluate, end } = await connect(url);
  const connected = performance.now() - began;
  const [small, large]: [number[], number[]] = [[], []];
  for (let call = 0; call < CALLS; call++) small.push(await time(() => evaluate('1 + 1')));
  for (let call = 0; call < 2; call++) large.push(await time(() => evaluate(`'x'.repeat(${BYTES})`)));
  await end();
  return {
    connect: connected,
    'page.evaluate': median(small),
    [`a message of ${BYTES / 1024 / 1024} MB`]: median(large),
  };
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

function overOurs(connect: (socket: Socket) => Promise<Connected>): Connect {
  return async (url) => {
    const socket = await Socket.open(url, AbortSignal.timeout(10_000));
    const { evaluate, end } = await connect(socket);
    return {
      evaluate,
      end: async () => {
        socket.close('closed-by-us');
        await end();
        await socket.ended;
      },
    };
  };
}
