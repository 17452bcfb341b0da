import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BrowserPool } from 'pooled-browser';
import { WebSocket } from 'ws';
import { FakeService, reply, session } from '../support/fake-service.js';
import { PlayedBrowser } from '../support/played-browser.js';
import { compare, time, type Service } from './bench.js';

/** Messages of a round, in one direction: one after the other, and all at once. */
const SERIAL = 1000;
const PARALLEL = 5000;
/** Large messages of a round, and their size in MB. */
const LARGE = 5;
const MEGABYTES = 4;
/** Clients for the memory of one. */
const IDLE = 500;

export const DIRECT = "the pool's own WebSocket";
export const BARE = 'a relay that reads nothing';

/**
 * Compares a CDP connection through `pooled-browser proxy`, which runs in its own process, with one without it, and with one through the
 * least that a process in between can do.
 */
export async function compareProxy(service: Service, rounds: number): Promise<string[][]> {
  await using pool = new BrowserPool('bench', service);
  await using proxy = await startProxy('bench', service);
  return await compare({
    subject: 'proxy',
    ways: {
      [DIRECT]: async () => {
        const { session_id: id, cdp_ws_url: url } = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
        return measure(url).finally(() => pool.release(id));
      },
      [BARE]: async () => {
        const { session_id: id, cdp_ws_url: url } = (await pool.acquire({ acquire_timeout_seconds: 30 }))!;
        await using relay = await startProgram([BARE_RELAY, url]);
        return await measure(relay.line).finally(() => pool.release(id));
      },
      'pooled-browser proxy': () => measure(proxy.cdp),
    },
    units: { 'one after the other': 'messages/s', 'all at once': 'messages/s', large: 'MB/s' },
    peers: [DIRECT, BARE],
    rounds,
  });
}

async function measure(
  url: string,
): Promise<Record<'one after the other' | 'all at once' | 'large', number>> {
  const client = new WebSocket(url, { perMessageDeflate: false });
  let waiting = 0;
  let done = () => {};
  client.on('message', () => {
    if (--waiting === 0) done();
  });
  await once(client, 'open');
  let id = 0;
  const send = (method: string, params: object, sessionId?: string) =>
    client.send(JSON.stringify({ id: ++id, method, params, sessionId }));
  const answered = (count: number, call: () => void) =>
    new Promise<void>((resolve) => {
      waiting = count;
      done = resolve;
      call();
    });
  const version = () => send('Browser.getVersion', {});
  const serial = await time(async () => {
    for (let sent = 0; sent < SERIAL; sent++) await answered(1, version);
  });
  const parallel = await time(() =>
    answered(PARALLEL, () => {
      for (let sent = 0; sent < PARALLEL; sent++) version();
    }),
  );
  const ask = (method: string, params: object) =>
    new Promise<Record<string, string>>((resolve) => {
      const onMessage = (data: Buffer) => {
        const message = JSON.parse(String(data)) as { id?: number; result: Record<string, string> };
        // The event of a session comes before the response.
        if (message.id !== id) return;
        client.off('message', onMessage);
        resolve(message.result);
      };
      client.on('message', onMessage);
      send(method, params);
    });
  const { targetId } = await ask('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true });
  // The message is as large in both directions.
  const size = MEGABYTES * 1_000_000;
  const params = { expression: `'x'.repeat(${size})`, unused: 'x'.repeat(size) };
  const large = await time(async () => {
    for (let sent = 0; sent < LARGE; sent++)
      await answered(1, () => send('Runtime.evaluate', params, sessionId));
  });
  client.close();
  await once(client, 'close');
  return {
    'one after the other': (SERIAL / serial) * 1000,
    'all at once': (PARALLEL / parallel) * 1000,
    large: ((2 * LARGE * MEGABYTES) / large) * 1000,
  };
}

/** The memory that one idle client takes in the proxy, in kB. Linux only. */
export async function memoryOfIdleClient(): Promise<number> {
  await using service = await FakeService.start();
  await using browser = await PlayedBrowser.start();
  let leases = 0;
  service.script('acquire', (response) => {
    const json = session({ session_id: `session-${leases++}`, cdp_ws_url: browser.url });
    reply(response, { status: 200, json });
  });
  await using proxy = await startProxy('pool', service.options);
  const connect = async () => {
    const client = new WebSocket(proxy.cdp);
    await once(client, 'open');
    return client;
  };
  // The first ones load the code.
  const clients = await Promise.all(Array.from({ length: 20 }, connect));
  const before = proxy.memory();
  for (let count = 0; count < IDLE; count += 20)
    clients.push(...(await Promise.all(Array.from({ length: 20 }, connect))));
  const used = (proxy.memory() - before) / IDLE;
  clients.forEach((client) => client.terminate());
  return used;
}

async function startProxy(pool: string, { baseUrl, token }: Service) {
  const env = { BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const program = await startProgram([CLI, 'proxy', pool, '--port', '0', '--json'], env);
  return { ...program, cdp: (JSON.parse(program.line) as { cdp: string }).cdp };
}

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const BARE_RELAY = fileURLToPath(new URL('programs/bare-relay.mjs', import.meta.url));

/** Starts a program of Node. Resolves with the first line that it prints. */
async function startProgram(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  lines.on('line', () => {});
  return {
    line,
    /** In kB. */
    memory: () => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
