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
const LARGE = 10;
const MEGABYTES = 4;
/** Clients for the memory of one. */
const IDLE = 500;

export const DIRECT = "the pool's own WebSocket";

/** Compares a CDP connection through `pooled-browser proxy`, which runs in its own process, with one without it. */
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
      'pooled-browser proxy': () => measure(proxy.cdp),
    },
    units: { 'one after the other': 'messages/s', 'all at once': 'messages/s', large: 'MB/s' },
    peers: [DIRECT],
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
  const large = await time(async () => {
    // An error that repeats its input: the message is as large in both directions.
    const method = 'x'.repeat(MEGABYTES * 1_000_000);
    for (let sent = 0; sent < LARGE; sent++) await answered(1, () => send(method, {}));
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
  const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const child = spawn(process.execPath, [cli, 'proxy', pool, '--port', '0', '--json'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  lines.on('line', () => {});
  return {
    cdp: (JSON.parse(line) as { cdp: string }).cdp,
    /** In kB. */
    memory: () => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}
