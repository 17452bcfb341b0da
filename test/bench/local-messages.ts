/**
 * `npm run bench:local-messages`: CDP messages through the local pool, compared with Chromium's own port, with and without
 * a TCP relay in front of it. ROUNDS (default 100).
 */
import { on, once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { WebSocket } from 'ws';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromiumFlags } from '../../src/local/browser/chromium-flags.js';
import { findBrowser } from '../../src/local/browser/find-browser.js';
import { startLocalPool } from '../../src/local.js';
import { realSession } from '../support/real-session.js';
import { compare, printComparison, setting, time } from './bench.js';

const ROUNDS = setting('ROUNDS', 100);
const MEGABYTES = 5;
const OWN_PORT = "Chromium's own port";
/** The same with a relay, which a pool would need in front of such a port. */
const BEHIND_RELAY = `${OWN_PORT}, behind a TCP relay`;

printComparison(await measureMessages(), [OWN_PORT, BEHIND_RELAY]);
process.exit();

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
