/**
 * `npm run bench -- message-time`: the time of a message between a client and its browser through `pooled-browser proxy`, without a limit
 * and with one (`--allow-hosts`). BENCH_PEER names the folder of another clone, in which `npm run build` has run, to compare with. ROUNDS
 * (default 5).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { compare, printComparison, servePool, setting, time, type Way } from './bench.js';

/** Messages of a round: commands, their responses, and as many events as commands. */
const COMMANDS = 6667;
/** Commands on their way at the same time. */
const AT_ONCE = 20;
const HERE = fileURLToPath(new URL('../..', import.meta.url));
const PEER = process.env['BENCH_PEER'];

type Figure = 'CPU' | 'wall';

await using served = await servePool(4);
const proxies: AsyncDisposable[] = [];
const versions = { ...(PEER && { 'the other version': PEER }), 'this version': HERE };
const limits = { '': [], ', with a limit': ['--allow-hosts', '127.0.0.1'] };
for (const [limit, flags] of Object.entries(limits)) {
  const ways: Record<string, Way<Figure>> = {};
  for (const [version, folder] of Object.entries(versions)) {
    const proxy = await startProxy(folder, flags);
    proxies.push(proxy);
    ways[`${version}${limit}`] = () => measure(proxy);
  }
  const peers = [Object.keys(ways)[0]!];
  const units = { CPU: 'ms', wall: 'ms' };
  const subject = `${3 * COMMANDS} messages`;
  printComparison(await compare({ subject, ways, units, peers, rounds: setting('ROUNDS', 5) }), peers);
}
for (const proxy of proxies) await proxy[Symbol.asyncDispose]();

/** The processor time of the proxy, and the time of the client. */
async function measure({
  cdp,
  cpu,
}: Awaited<ReturnType<typeof startProxy>>): Promise<Record<Figure, number>> {
  const client = new WebSocket(cdp, { perMessageDeflate: false });
  await once(client, 'open');
  const waiting = new Map<number, (result: Record<string, string>) => void>();
  let events = 0;
  client.on('message', (data) => {
    const { id, result, method } = JSON.parse(String(data)) as {
      id?: number;
      result: Record<string, string>;
      method?: string;
    };
    if (method === 'Runtime.consoleAPICalled') events++;
    if (id === undefined) return;
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  let last = 0;
  const ask = (method: string, params: object, sessionId?: string) =>
    new Promise<Record<string, string>>((resolve) => {
      waiting.set(++last, resolve);
      client.send(JSON.stringify({ id: last, method, params, sessionId }));
    });
  const { targetId } = await ask('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true });
  await ask('Runtime.enable', {}, sessionId);
  const commands = [
    () => ask('Runtime.evaluate', { expression: 'console.log({ a: 1, b: [2, 3] }, "text"); 1' }, sessionId),
    () => ask('Runtime.evaluate', { expression: `console.log(1); '${'x'.repeat(2000)}'` }, sessionId),
    () => ask('Runtime.evaluate', { expression: 'console.log("done")' }, sessionId),
  ];
  let sent = 0;
  const work = async () => {
    while (sent < COMMANDS) await commands[sent++ % commands.length]!();
  };
  const before = cpu();
  const wall = await time(() => Promise.all(Array.from({ length: AT_ONCE }, work)));
  const CPU = cpu() - before;
  if (events < COMMANDS) throw new Error(`${events} events arrived instead of ${COMMANDS}.`);
  client.close();
  await once(client, 'close');
  return { CPU, wall };
}

async function startProxy(folder: string, flags: readonly string[]) {
  const { baseUrl, token } = served.service;
  const args = [join(folder, 'dist/cli/main.js'), 'proxy', 'bench', '--port', '0', '--json', ...flags];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  lines.on('line', () => {});
  const { cdp } = JSON.parse(line) as { cdp: string };
  return {
    cdp,
    /** Processor time so far, in ms. Linux only. */
    cpu() {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
