/**
 * `npm run bench -- agents`: 50 agents on 5 browsers of a local pool, over `pooled-browser proxy` in a process of its own, for MINUTES
 * (default 10). AGENTS (default 50), BROWSERS (default 5).
 *
 * An agent is a CDP client without this library. In a loop it connects to its name, opens a page, asks a person three times, and
 * disconnects. One in ten agents is killed while it waits, works or asks, and one in ten hand-offs gets no answer. It fails if a call of
 * an agent has an unexpected end, the pool serves as many later agents first as it has browsers, or a lease
 * is left. Linux only.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import type { ProxyEvent } from '../../src/index.js';
import { Site } from '../support/site.js';
import { printTable, servePool, setting, type Service } from './bench.js';

const MINUTES = setting('MINUTES', 10);
const AGENTS = setting('AGENTS', 50);
const BROWSERS = setting('BROWSERS', 5);
const HANDOFFS = 3;
/** Milliseconds after which a hand-off without an answer ends. */
const UNANSWERED = 3000;
/** Milliseconds for a command: without an answer, it is lost. */
const COMMAND = 60_000;
const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** What happened, for the table. */
const counts = {
  leased: 0,
  released: 0,
  asked: 0,
  done: 0,
  declined: 0,
  'timed out': 0,
  'ended by a kill': 0,
  'killed while it waited': 0,
  'killed while it worked': 0,
  'killed while it asked': 0,
};
const faults: string[] = [];
/** Clients without a browser, in the order of the proxy, each with the number of later ones that got theirs first. */
const arrivals = new Map<string, number>();
const leasesOf = new Map<string, number>();
/** How many clients were overtaken by so many later ones. */
const overtaken: number[] = [];

await using site = await Site.open((request, response) =>
  response
    .setHeader('content-type', 'text/html')
    .end(`<title>${request.url}</title><p>${'text '.repeat(500)}`),
);
await using served = await servePool(BROWSERS, [], (line) => noteGrant(JSON.parse(line)));
await using proxy = await startProxy(served.service);

const began = performance.now();
const isOver = () => performance.now() - began > MINUTES * 60_000;
const agents = Array.from({ length: AGENTS }, (_, index) => runAgent(`agent-${index + 1}`));
await sleep(MINUTES * 15_000);
const early = proxy.memory();
await Promise.all(agents);
const late = proxy.memory();
const left = await leasesLeft(served.service);
if (left > 0) fault('pool', `${left} leases are left`);
if (counts.leased !== counts.released)
  fault('proxy', `${counts.leased} leases began, ${counts.released} were released`);
print();
process.exitCode = faults.length > 0 ? 1 : 0;

function print(): void {
  const each = [...leasesOf.values()];
  printTable(
    ['what', 'value'],
    [
      ['minutes', ((performance.now() - began) / 60_000).toFixed(1)],
      ...Object.entries(counts),
      ['leases of an agent', `${Math.min(...each)} to ${Math.max(...each)} (${each.length} agents)`],
      [
        'clients before which 0, 1, 2, … later ones got a browser',
        Array.from(overtaken, (count: number | undefined) => count ?? 0).join(', '),
      ],
      [
        'memory of the proxy, after a quarter and at the end',
        `${early.toFixed(0)} MB, ${late.toFixed(0)} MB (×${(late / early).toFixed(2)})`,
      ],
      ['leases left', left],
      ['faults', faults.length],
    ],
  );
}

function fault(who: string, what: string): void {
  faults.push(what);
  if (faults.length <= 20) console.log(`${who}: ${what}`);
}

/** An agent and those that take its place after a kill. Never rejects. */
async function runAgent(name: string): Promise<void> {
  while (!isOver()) {
    const kill = Math.random() < 0.1 ? oneOf(['waited', 'worked', 'asked'] as const) : undefined;
    await leaseOnce(name, kill).catch((error: Error) => fault(name, error.message));
    await sleep(Math.random() * 1000);
  }
}

type Kill = 'waited' | 'worked' | 'asked' | undefined;

async function leaseOnce(name: string, kill: Kill): Promise<void> {
  const client = new WebSocket(`${proxy.cdp}/${name}`, { perMessageDeflate: false });
  // A client that is killed before it is connected emits one.
  client.on('error', () => {});
  const die = (where: Exclude<Kill, undefined>) => {
    counts[`killed while it ${where}`]++;
    arrivals.delete(name);
    client.terminate();
  };
  const opened = once(client, 'open');
  if (kill === 'waited') {
    const isOpen = opened.then(
      () => true,
      () => true,
    );
    await Promise.race([isOpen, sleep(200 + Math.random() * 2000)]);
    return die('waited');
  }
  await opened;
  leasesOf.set(name, (leasesOf.get(name) ?? 0) + 1);
  const page = await openPage(client);
  const killedAt = kill && Math.floor(Math.random() * HANDOFFS);
  for (let index = 0; index < HANDOFFS; index++) {
    await visit(page, `/${name}/${index}`);
    if (index === killedAt && kill === 'worked') {
      void page('Runtime.evaluate', { expression: 'new Promise(() => {})', awaitPromise: true }).catch(
        () => {},
      );
      return die('worked');
    }
    await ask(name, index === killedAt ? die : undefined);
    if (index === killedAt) return;
  }
  client.close();
  await once(client, 'close');
}

/** What the commands of this file answer. */
interface Result {
  readonly targetId: string;
  readonly sessionId: string;
  readonly result: { readonly value: unknown };
}

interface Message {
  readonly id?: number;
  readonly result?: Result;
  readonly error?: { readonly message: string };
}

/** Sends a command of a page. Rejects if there is no answer. */
type Send = (method: string, params: object) => Promise<Result>;

async function openPage(client: WebSocket): Promise<Send> {
  const open = new Map<number, (message: Message) => void>();
  let id = 0;
  client.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    if (message.id === undefined) return;
    open.get(message.id)?.(message);
    open.delete(message.id);
  });
  client.once('close', () => open.forEach((answer) => answer({ error: { message: 'disconnected' } })));
  const send = async (method: string, params: object, sessionId?: string) => {
    const answered = new Promise<Message>((resolve) => open.set(++id, resolve));
    client.send(JSON.stringify({ id, method, params, sessionId }));
    const late = sleep<Message>(COMMAND, { error: { message: 'no answer' } }, { ref: false });
    const { result, error } = await Promise.race([answered, late]);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result!;
  };
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  return (method, params) => send(method, params, sessionId);
}

async function visit(page: Send, path: string): Promise<void> {
  await page('Page.navigate', { url: site.url + path });
  const expression =
    'new Promise((resolve) => document.readyState === "complete" ? resolve(document.title) : (onload = () => resolve(document.title)))';
  const { result } = await page('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  if (result.value !== path) throw new Error(`The page is ${result.value}, not ${path}.`);
}

/** Asks a person to act, and expects what the person is scripted to do. @param die Ends the agent in the middle. */
async function ask(name: string, die: ((where: 'asked') => void) | undefined): Promise<void> {
  const choice = Math.random() < 0.1 ? 'ignore' : oneOf(['done', 'done', 'done', 'declined'] as const);
  const abort = new AbortController();
  counts.asked++;
  const asking = fetch(`${proxy.url}/${name}/handoff`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      message: `${name}: ${choice}`,
      timeout: choice === 'ignore' ? UNANSWERED : 60_000,
    }),
    signal: abort.signal,
  });
  if (die) {
    asking.catch(() => {});
    await sleep(Math.random() * 300);
    die('asked');
    counts['ended by a kill']++;
    return abort.abort();
  }
  const response = await asking;
  const body = (await response.json()) as { status?: string; note?: string; error?: string };
  const status = response.status === 408 ? 'ignore' : body.status;
  if (status !== choice || (status !== 'ignore' && body.note !== name))
    throw new Error(`The hand-off "${choice}" ended with ${response.status} ${JSON.stringify(body)}.`);
  counts[choice === 'ignore' ? 'timed out' : choice]++;
}

/** A person, who reads what is asked at the page of the hand-off, and answers it. */
async function answer(url: string): Promise<void> {
  const facts = await fetch(`${url}facts`).then(
    (response) => response.json() as Promise<{ message: string }>,
  );
  const [name, choice] = facts.message.split(': ');
  if (choice === 'ignore') return;
  await sleep(Math.random() * 1000);
  await fetch(`${url}answer`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(url).origin },
    body: JSON.stringify({ status: choice, note: name }),
  });
}

async function startProxy({ baseUrl, token }: Service) {
  const env = { ...process.env, BROWSER_POOL_BASE_URL: baseUrl, BROWSER_POOL_ACCESS_TOKEN: token };
  const times = ['--keep', '1ms', '--lifetime', '10m', '--idle-timeout', '2m', '--acquire-timeout', '20m'];
  const child = spawn(process.execPath, [CLI, 'proxy', 'bench', '--port', '0', '--json', ...times], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const events = createInterface({ input: child.stdout });
  const ended = once(child, 'exit').then(() => {
    throw new Error('The proxy ended.');
  });
  ended.catch(() => {});
  const [first] = (await Promise.race([once(events, 'line'), ended])) as [string];
  events.on('line', (line) => note(JSON.parse(line) as ProxyEvent));
  createInterface({ input: child.stderr }).on('line', (line) => {
    const url = /^\s*Open (http:\S+)$/.exec(line)?.[1];
    // The page of an agent that was killed is gone.
    if (url !== undefined) void answer(url).catch(() => {});
    else if (!line.includes('A person is needed')) console.log(`proxy: ${line}`);
  });
  const { url, cdp } = JSON.parse(first) as { url: string; cdp: string };
  return {
    url,
    cdp,
    /** In MB. */
    memory: () =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

function note(event: ProxyEvent): void {
  const name = event.name ?? '';
  if (event.type === 'waiting') arrivals.set(name, 0);
  else if (event.type === 'leased') {
    counts.leased++;
    arrivals.delete(name);
  } else if (event.type === 'refused') fault(name, `refused with ${event.status}: ${event.reason}`);
  else if (event.type === 'disconnected' && event.isIdle) fault(name, 'disconnected as idle');
  else if (event.type === 'released') {
    counts.released++;
    const { released } = event as unknown as { released: string };
    if (released === 'failed' || released === 'unknown') fault(name, `the release ended with ${released}`);
  }
}

/** An event of the pool. Counts the later clients whose browser it leased first. */
function noteGrant({ type, name = '' }: { type: string; name?: string }): void {
  if (type !== 'leased') return;
  const passedBy = arrivals.get(name);
  if (passedBy === undefined) return;
  overtaken[passedBy] = (overtaken[passedBy] ?? 0) + 1;
  // Requests that are sent together can reach the pool in another order.
  if (passedBy >= BROWSERS) fault(name, `${passedBy} later clients got a browser first`);
  for (const [earlier, count] of arrivals) {
    if (earlier === name) break;
    arrivals.set(earlier, count + 1);
  }
  arrivals.delete(name);
}

/** Leases of the pool, when the releases that are under way have had time. */
async function leasesLeft({ baseUrl, token }: Service): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(`${baseUrl}/browsers`, { headers: { authorization: `Bearer ${token}` } });
    const { length } = (await response.json()) as unknown[];
    if (length === 0 || attempt === 60) return length;
    await sleep(500);
  }
}

function oneOf<Value>(values: readonly Value[]): Value {
  return values[Math.floor(Math.random() * values.length)]!;
}
