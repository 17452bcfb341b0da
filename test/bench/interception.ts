/**
 * The end of `npm run bench -- expose-network`: what the ways to intercept requests in Chromium cost the requests that they do not match, without this
 * library: plain CDP, pages of 4 requests. The processor time is that of the browser's processes. No pattern here matches a
 * request. PAGES (default 30), ROUNDS (default 8), DELAY (default 0): time in ms after which the site answers.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BrowserPool } from 'pooled-browser';
import { WebSocket } from 'ws';
import { compare, printComparison, servePool, setting, time } from './bench.js';

const PAGES = setting('PAGES', 30);
const ROUNDS = setting('ROUNDS', 8);
const NOTHING = 'nothing';

type Result = Record<string, never>;
type Send = (method: string, params?: object, sessionId?: string) => Promise<Result>;
interface Message {
  id?: number;
  method?: string;
  sessionId?: string;
  result?: Result;
  error?: { message: string };
}

await using served = await servePool();
const app = spawn(process.execPath, [fileURLToPath(new URL('programs/app.mjs', import.meta.url))], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [port] = (await once(createInterface({ input: app.stdout }), 'line')) as [string];
const pool = new BrowserPool('bench', served.service);
const session = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
const socket = new WebSocket(session.cdp_ws_url);
await once(socket, 'open');
const waiting = new Map<number, (message: Message) => void>();
let lastId = 0;
let onLoaded = () => {};
socket.on('message', (data: Buffer) => {
  const message = JSON.parse(String(data)) as Message;
  if (message.id !== undefined) waiting.get(message.id)?.(message);
  else if (message.method === 'Page.loadEventFired') onLoaded();
});
const send: Send = async (method, params = {}, sessionId?) => {
  const answer = new Promise<Message>((resolve) => waiting.set(++lastId, resolve));
  socket.send(JSON.stringify({ id: lastId, method, params, sessionId }));
  const { result, error } = await answer;
  if (error) throw new Error(`${method}: ${error.message}`);
  return result!;
};

async function openPage(options: object): Promise<{ page: string; context: string }> {
  const { browserContextId } = await send('Target.createBrowserContext', options);
  const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  return { page: sessionId!, context: browserContextId! };
}

/** Processor time in ms of the browser's processes, by their type. */
async function processorTime(): Promise<Record<string, number>> {
  const { processInfo } = (await send('SystemInfo.getProcessInfo')) as unknown as {
    processInfo: { type: string; cpuTime: number }[];
  };
  const sum = (is: (type: string) => boolean) =>
    processInfo.reduce((all, { type, cpuTime }) => all + (is(type) ? 1000 * cpuTime : 0), 0);
  return {
    browser: sum((type) => type === 'browser'),
    // The network service is one of these.
    utility: sum((type) => /utility|network/i.test(type)),
    renderer: sum((type) => type === 'renderer'),
  };
}

interface Kind {
  context?: object;
  /** Prepares the page. Returns what undoes it. */
  prepare?: (page: string) => Promise<unknown>;
  undo?: () => Promise<unknown>;
}

const pattern = (index = 0) => ({ urlPattern: `http://other-${index}.test:3000/*` });
const disable = () => send('Fetch.disable');
const fetchOfBrowser = (patterns: object[]): Kind => ({
  prepare: () => send('Fetch.enable', { patterns }),
  undo: disable,
});
const ofPage = (method: string, params: object): Kind => ({
  prepare: async (page) => (await send('Network.enable', {}, page), send(method, params, page)),
});
let other: string | undefined;

const KINDS: Record<string, Kind> = {
  [NOTHING]: {},
  'nothing, again': {},
  'Fetch of the browser, 1 pattern': fetchOfBrowser([pattern()]),
  'Fetch of the browser, 32 patterns': fetchOfBrowser(
    Array.from({ length: 32 }, (_, index) => pattern(index)),
  ),
  'Fetch of the browser, only documents': fetchOfBrowser([{ ...pattern(), resourceType: 'Document' }]),
  'Fetch of the browser, no pattern': fetchOfBrowser([]),
  'Fetch of the page': { prepare: (page) => send('Fetch.enable', { patterns: [pattern()] }, page) },
  'Fetch of another page': {
    prepare: async () => {
      const opened = await openPage({});
      other = opened.context;
      await send('Fetch.enable', { patterns: [pattern()] }, opened.page);
    },
    undo: () => send('Target.disposeBrowserContext', { browserContextId: other }),
  },
  'Network.enable of the page': { prepare: (page) => send('Network.enable', {}, page) },
  'the same, and setBlockedURLs': ofPage('Network.setBlockedURLs', {
    urlPatterns: [{ urlPattern: 'http://other.test:3000/*', block: true }],
  }),
  'a proxy of the context, bypassed': {
    context: { proxyServer: 'http://127.0.0.1:9', proxyBypassList: '<-loopback>,127.0.0.1' },
  },
};

async function measure({ context = {}, prepare, undo }: Kind): Promise<Record<string, number>> {
  const opened = await openPage(context);
  await send('Page.enable', {}, opened.page);
  await prepare?.(opened.page);
  const visit = async (index: number) => {
    const loaded = new Promise<void>((resolve) => (onLoaded = resolve));
    await send('Page.navigate', { url: `http://127.0.0.1:${port}/plain/${index}` }, opened.page);
    await loaded;
  };
  await visit(0);
  const before = await processorTime();
  const duration = await time(async () => {
    for (let index = 0; index < PAGES; index++) await visit(index);
  });
  const after = await processorTime();
  await undo?.();
  await send('Target.disposeBrowserContext', { browserContextId: opened.context });
  const each = Object.entries(after).map(([type, value]) => [type, (value - before[type]!) / PAGES] as const);
  const all = each.reduce((sum, [, value]) => sum + value, 0);
  return { rate: (1000 * PAGES) / duration, all, ...Object.fromEntries(each) };
}

const rows = await compare({
  subject: `${PAGES} pages of 4 requests`,
  ways: Object.fromEntries(Object.entries(KINDS).map(([name, kind]) => [name, () => measure(kind)])),
  units: { rate: 'pages/s', all: 'ms/page', browser: 'ms/page', utility: 'ms/page', renderer: 'ms/page' },
  peers: [NOTHING],
  rounds: ROUNDS,
});
printComparison(rows, [NOTHING]);
socket.close();
await pool.release(session.session_id, { reuse: false });
app.kill();
await pool.close();
