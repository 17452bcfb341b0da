/**
 * What one hostile client costs the others: the longest time of another client's answer while it sends one message, the memory of the
 * process, and the time to end after SIGTERM. The targets are the proxy, also at /playwright, and the sockets of a local pool. Linux only.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BrowserPool } from 'pooled-browser';
import { WebSocket } from 'ws';
import { printTable, setting } from './bench.js';

/** Size of a hostile message in MB, where its kind leaves it open. */
const SIZE = setting('BENCH_MEGABYTES', 40) * 1_000_000;
/** The longest time for a target to answer the other client after a hostile message, in ms. */
const PATIENCE = 120_000;

const repeated = (text: string, bytes = SIZE) => text.repeat(Math.floor(bytes / text.length));
/** A message whose content is hostile. It is a command of CDP, of BiDi and a call of Playwright at the same time. */
const withContent = (content: string) =>
  Buffer.from(
    `{"id":7,"guid":"","method":"Runtime.evaluate","metadata":{},"params":{"expression":"1","a":${content}}}`,
  );

/** The connections below the WebSockets. */
const connections = new WeakMap<WebSocket, Writable>();

/** Sends a command, and returns the result. */
async function ask(client: WebSocket, method: string, params: object): Promise<Record<string, unknown>> {
  client.send(JSON.stringify({ id: 5, method, params }));
  for (;;) {
    const [data] = (await once(client, 'message')) as [Buffer];
    const { id, result } = JSON.parse(String(data)) as { id?: number; result?: Record<string, unknown> };
    if (id === 5) return result!;
  }
}

/** Has a page answer with a million empty lists, and waits for the answer. */
async function askForLists(client: WebSocket): Promise<void> {
  const expression = 'Array(1e6).fill([])';
  const send = (command: object) => client.send(JSON.stringify({ id: 9, ...command }));
  if (client.url.includes('/session?')) {
    await ask(client, 'session.new', { capabilities: {} });
    const { contexts } = await ask(client, 'browsingContext.getTree', {});
    const [target] = contexts as object[];
    send({ method: 'script.evaluate', params: { expression, target, awaitPromise: false } });
  } else {
    const { targetId } = await ask(client, 'Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await ask(client, 'Target.attachToTarget', { targetId, flatten: true });
    send({ method: 'Runtime.evaluate', params: { expression, returnByValue: true }, sessionId });
  }
  await once(client, 'message');
}

type Attack = () => (client: WebSocket) => void | Promise<void>;
/** The message is created before the time begins, and has had its effect when the client has an answer or is disconnected. */
const message =
  (create: () => Buffer): Attack =>
  () => {
    const data = create();
    return async (client) => {
      client.send(data, { binary: false }, () => {});
      await Promise.race(['message', 'close'].map((event) => once(client, event)));
    };
  };

const ATTACKS: Readonly<Record<string, Attack | undefined>> = {
  none: undefined,
  'one text of 50 MB in base64, as Playwright sends a file': message(() =>
    withContent(`"${repeated('A', 66_700_000)}"`),
  ),
  'one text above the limit': message(() => withContent(`"${repeated('A', 130_000_000)}"`)),
  'empty lists': message(() => withContent(`[${repeated('[],')}0]`)),
  'values at the limit, each with a name': message(() => {
    const names = Array.from({ length: 245_000 }, (_, index) => `"${(index + 1e7).toString(36)}":1`);
    return withContent(`{${names.join(',')}}`);
  }),
  names: message(() => {
    const names = Array.from({ length: SIZE / 10 }, (_, index) => `"${(index + 1e7).toString(36)}":1`);
    return withContent(`{${names.join(',')}}`);
  }),
  levels: message(() => withContent(repeated('[', SIZE / 2) + repeated(']', SIZE / 2))),
  'objects in objects': message(() =>
    withContent(`${repeated('{"a":', SIZE / 2)}1${repeated('}', SIZE / 10)}`),
  ),
  'an answer of a million lists': () => askForLists,
  'fragments without end': () => (client) => {
    const send = (count: number) => {
      for (let sent = 0; sent < 1000; sent++) client.send('[', { fin: false }, () => {});
      if (count > 0 && client.readyState === client.OPEN) setImmediate(send, count - 1);
    };
    send(1000);
  },
  'a compressed frame': () => (client) => {
    const frame = Buffer.from([0xc1, 0x80, 0, 0, 0, 0]);
    connections.get(client)!.write(frame);
  },
  'pings without reading': () => (client) => {
    client.pause();
    const send = (count: number) => {
      for (let sent = 0; sent < 1000; sent++) client.ping('x'.repeat(125), true, () => {});
      if (count > 0 && client.readyState === client.OPEN) setImmediate(send, count - 1);
    };
    send(500);
  },
};

interface Target extends AsyncDisposable {
  /** Opens a client that others must not notice. */
  hostile(): Promise<WebSocket>;
  /** Waits for the answer to a command of another client. */
  ask(): Promise<void>;
  readonly child: ChildProcess;
}

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Starts a program, and waits for the first line that it prints as JSON. */
async function start(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [cli, ...args, '--port', '0', '--json'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += chunk));
  while (!printed.includes('\n')) await once(child.stdout, 'data');
  return { child, facts: JSON.parse(printed.split('\n')[0]!) as Record<string, string> };
}

async function open(url: string): Promise<WebSocket> {
  const client = new WebSocket(url, { perMessageDeflate: false });
  client.on('error', () => {});
  client.once('upgrade', ({ socket }) => connections.set(client, socket));
  await once(client, 'open');
  return client;
}

function asker(client: WebSocket, command: object): () => Promise<void> {
  let id = 100;
  return async () => {
    client.send(JSON.stringify({ id: ++id, ...command }));
    for (;;) {
      const [data] = (await once(client, 'message')) as [Buffer];
      if ((JSON.parse(String(data)) as { id?: number }).id === id) return;
    }
  };
}

const VERSION = { method: 'Browser.getVersion', params: {} };

/** @param path Of the hostile client. */
async function proxyTarget(path: string): Promise<Target> {
  const pool = await start(['serve', '--pool', 'test=2']);
  const { baseUrl, token } = pool.facts as { baseUrl: string; token: string };
  const proxy = await start(['proxy', 'test'], {
    BROWSER_POOL_BASE_URL: baseUrl,
    BROWSER_POOL_ACCESS_TOKEN: token,
  });
  const { cdp } = proxy.facts as { cdp: string };
  const other = await open(cdp);
  return {
    child: proxy.child,
    ask: asker(other, VERSION),
    hostile: () => open(cdp + path),
    async [Symbol.asyncDispose]() {
      await end(proxy.child);
      await end(pool.child);
    },
  };
}

async function poolTarget(url: 'cdp_ws_url' | 'webdriver_ws_url'): Promise<Target> {
  const { child, facts } = await start(['serve', '--pool', 'test=2']);
  const { baseUrl, token } = facts as { baseUrl: string; token: string };
  const pool = new BrowserPool('test', { baseUrl, token });
  const lease = async () => (await pool.acquire({ acquire_timeout_seconds: 60 }))!;
  const other = await open((await lease()).cdp_ws_url);
  return {
    child,
    ask: asker(other, VERSION),
    hostile: async () => open((await lease())[url]),
    async [Symbol.asyncDispose]() {
      await end(child);
      await pool.close();
    },
  };
}

async function end(child: ChildProcess): Promise<number> {
  if (child.exitCode !== null) return 0;
  const began = performance.now();
  child.kill('SIGTERM');
  await once(child, 'exit');
  return performance.now() - began;
}

/** Peak of the memory in MB. */
function peakOf({ pid }: ChildProcess): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1000;
}

const TARGETS: Readonly<Record<string, () => Promise<Target>>> = {
  "the proxy's /": () => proxyTarget(''),
  "the proxy's /alice": () => proxyTarget('/alice'),
  "the proxy's /playwright": () => proxyTarget('/playwright'),
  'CDP of a local pool': () => poolTarget('cdp_ws_url'),
  'BiDi of a local pool': () => poolTarget('webdriver_ws_url'),
};

const only = process.env['BENCH_TARGET'];
const onlyKind = process.env['BENCH_MESSAGE'];
const rows: string[][] = [];
for (const [place, startTarget] of Object.entries(TARGETS)) {
  if (only !== undefined && !place.includes(only)) continue;
  for (const [kind, create] of Object.entries(ATTACKS)) {
    if (onlyKind !== undefined && !kind.includes(onlyKind)) continue;
    const attack = create?.();
    await using target = await startTarget();
    const client = await target.hostile();
    let closed = 'none';
    client.once('close', (code, reason) => (closed = `${code} ${String(reason)}`.trim()));
    for (let count = 0; count < 20; count++) await target.ask();
    let latest = 0;
    let isAtWork = true;
    void Promise.resolve(attack?.(client)).finally(() => (isAtWork = false));
    const before = performance.now();
    // The other client asks all the time, until the message has had its effect.
    while (
      performance.now() - before < 3000 ||
      ((isAtWork || latest > 2500) && performance.now() - before < PATIENCE / 4)
    ) {
      const asked = performance.now();
      await Promise.race([target.ask(), sleep(PATIENCE)]);
      latest = Math.max(latest, performance.now() - asked);
      await sleep(5);
    }
    const memory = peakOf(target.child);
    const ended = await end(target.child);
    rows.push([place, kind, latest.toFixed(0), memory.toFixed(0), ended.toFixed(0), closed]);
    console.log(rows.at(-1)!.join(' | '));
    client.terminate();
  }
}
printTable(['of', 'message', 'latest answer, ms', 'memory, MB', 'end, ms', 'close frame'], rows);
process.exit(0);
