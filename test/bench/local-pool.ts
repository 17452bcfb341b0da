/**
 * `npm run bench:local-pool`: the costs of the local pool: its start, its fill, a warm acquire, 20 browsers at once,
 * and CDP messages through the pool compared with Chromium's own port. ROUNDS (default 100).
 */
import { on, once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { WebSocket } from 'ws';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import { findBrowser } from '../../src/local/browser/find-browser.js';
import { startLocalPool, type LocalPool } from '../../src/local.js';
import { realSession } from '../support/real-session.js';
import { compare, printComparison, setting, time } from './bench.js';

const ROUNDS = setting('ROUNDS', 100);
const MEGABYTES = 5;
const OWN_PORT = "Chromium's own port";
/** The same with a relay, which a pool would need in front of such a port. */
const BEHIND_RELAY = `${OWN_PORT}, behind a TCP relay`;

printComparison(
  [...(await measureStart()), ...(await measureAcquire()), ...(await measureMessages())],
  [OWN_PORT, BEHIND_RELAY],
);
process.exit();

async function measureStart(): Promise<string[][]> {
  const start = async () => {
    const began = performance.now();
    await using local = await startLocalPool({ pools: [{ name: 'bench', size: 4 }] });
    await realSession(local);
    const first = performance.now() - began;
    while (local.stats().idle < 3) await sleep(5);
    return { 'to the first lease': first, 'to 4 browsers': performance.now() - began };
  };
  const many = async () => {
    const began = performance.now();
    await using local = await startLocalPool({ pools: [{ name: 'bench', size: 20 }] });
    const acquires = Array.from({ length: 20 }, () =>
      post(local, 'acquire', { acquire_timeout_seconds: 120 }),
    );
    const sessions = await Promise.all(acquires);
    const pages = await Promise.all(sessions.map(({ cdp_ws_url }) => openPage(String(cdp_ws_url))));
    await Promise.all(pages.map(({ evaluate }) => evaluate('1')));
    const answered = performance.now() - began;
    for (const { close } of pages) close();
    return { answering: answered };
  };
  const [subject, rounds, warmUp] = ['from the start', Math.min(5, ROUNDS), 0];
  const units = { 'to the first lease': 'ms', 'to 4 browsers': 'ms' };
  return [
    ...(await compare({ subject, ways: { 'a pool of 4': start }, units, rounds, warmUp })),
    ...(await compare({
      subject,
      ways: { 'a pool of 20': many },
      units: { answering: 'ms' },
      rounds: 1,
      warmUp,
    })),
  ];
}

async function measureAcquire(): Promise<string[][]> {
  await using local = await startLocalPool({ pools: [{ name: 'bench' }] });
  const acquire = async () => {
    const began = performance.now();
    const { session_id } = await post(local, 'acquire', { acquire_timeout_seconds: 10 });
    const acquired = performance.now() - began;
    await post(local, 'release', { session_id });
    return { acquire: acquired };
  };
  const ways = { 'local pool': acquire };
  return await compare({ subject: 'warm', ways, units: { acquire: 'ms' }, rounds: ROUNDS, warmUp: 10 });
}

async function measureMessages(): Promise<string[][]> {
  await using local = await startLocalPool({ pools: [{ name: 'bench' }] });
  await using chromium = await launchWithPort();
  const through = await openPage(String((await realSession(local))['cdp_ws_url']));
  const own = await openPage(chromium.url);
  const relayed = await openPage(await relayTo(chromium.url));
  const rows: string[][] = [];
  for (const [subject, rounds, script] of [
    ['a CDP message', ROUNDS * 5, '1'],
    [`a message of ${MEGABYTES} MB`, Math.min(20, ROUNDS), `'x'.repeat(${MEGABYTES * 1024 * 1024})`],
  ] as const) {
    const way = (page: Page) => async () => ({ 'round trip': await time(() => page.evaluate(script)) });
    const ways = { 'through the pool': way(through), [OWN_PORT]: way(own), [BEHIND_RELAY]: way(relayed) };
    const peers = [OWN_PORT, BEHIND_RELAY];
    rows.push(...(await compare({ subject, ways, units: { 'round trip': 'ms' }, peers, rounds })));
  }
  through.close();
  own.close();
  relayed.close();
  return rows;
}

async function relayTo(url: string): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.setNoDelay().pipe(upstream.setNoDelay()).pipe(client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`;
}

/** The same browser with a debugging port. */
async function launchWithPort(): Promise<AsyncDisposable & { url: string }> {
  const profile = mkdtempSync(join(tmpdir(), 'pooled-browser-'));
  const flags = chromiumFlags(profile, { headless: true, args: ['--remote-debugging-port=0'] });
  const args = flags.filter((flag) => flag !== '--remote-debugging-pipe');
  const child = spawn(await findBrowser({}), args, { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return {
      url,
      [Symbol.asyncDispose]: async () => {
        child.kill('SIGKILL');
        await once(child, 'exit');
        rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
      },
    };
  }
  throw new Error('Chromium did not start.');
}

async function post(local: LocalPool, call: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${local.token}`, 'content-type': 'application/json' };
  const url = `${local.baseUrl}/browser_pools/bench/${call}`;
  const response = await request(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.body.text();
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

interface Page {
  evaluate(expression: string): Promise<unknown>;
  close(): void;
}

/** A page over a plain WebSocket: the cost of an automation library would hide that of the pool. */
async function openPage(url: string): Promise<Page> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0 });
  await once(socket, 'open');
  const messages = on(socket, 'message');
  let lastId = 0;
  const ask = async (
    method: string,
    params: object,
    sessionId?: unknown,
  ): Promise<Record<string, unknown>> => {
    const id = ++lastId;
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    for (;;) {
      const { value } = (await messages.next()) as { value: [Buffer] };
      const message = JSON.parse(String(value[0])) as { id?: number; result: Record<string, unknown> };
      if (message.id === id) return message.result;
    }
  };
  const { targetInfos } = await ask('Target.getTargets', {});
  const { targetId } = (targetInfos as { type: string; targetId: string }[]).find(
    ({ type }) => type === 'page',
  )!;
  const { sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true });
  return {
    evaluate: (expression) => ask('Runtime.evaluate', { expression, returnByValue: true }, sessionId),
    close: () => socket.terminate(),
  };
}
