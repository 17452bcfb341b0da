import { createServer as createHttpServer, type Server } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BrowserPool, isPooledBrowserError, type RunOptions } from '../../src/index.js';
import { startLocalPool, type LocalPoolEvent } from '../../src/local.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { kernel } from '../../src/services.js';
import { CdpRelay, type Change } from './cdp-relay.js';
import { Random } from './random.js';

/** What only the canary file contains. */
const CANARY = 'the content of the canary file';
const ENCODED = Buffer.from(CANARY).toString('base64').slice(0, 30);
/** The first command of a callback: the connect is over, and changes begin. */
const BEGIN = 'the changes begin';
/** Leases at the same time. */
const SIDE_BY_SIDE = 4;
/** Changed messages of one lease: after that, its browser seldom still answers. */
const CHANGES = 400;
/** Part of the messages to which others are added, before and after the callback has begun. Most connects must succeed. */
const PART = { before: 0.002, after: 0.25 };
/** One message of this many is replaced or delayed. */
const REPLACED = 500;
/** Messages of a connection that are remembered, to send them again. */
const REMEMBERED = 50;
/** Time for a call, and for a callback, in ms. */
const CALL_TIMEOUT = 400;
const CALLBACK_TIME = 4000;
/** Calls without an answer after which a callback opens another page, or returns. */
const MOST_UNANSWERED = 3;

/** Wrong in most places. */
const VALUES: readonly unknown[] = [null, true, -1, 2 ** 53, 1e308, '', [], {}, [null], { a: { b: [] } }];

interface Fields {
  [name: string]: unknown;
}

/** Changes the messages of one direction of a connection, as a hostile browser, or a hostile client, would. */
export class Fuzzer {
  readonly #random: Random;
  readonly #texts: readonly string[];
  readonly #events: ((one: Fuzzer) => readonly [string, Fields])[];
  readonly #isBidi: boolean;
  readonly #seen: string[] = [];
  readonly #sessions: string[] = [];

  /**
   * @param texts Values that lead to the canaries.
   * @param events Those that it invents.
   */
  constructor(random: Random, texts: readonly string[], events = CDP_EVENTS, isBidi = false) {
    this.#random = random;
    this.#texts = texts;
    this.#events = [...events];
    this.#isBidi = isBidi;
  }

  /**
   * Adds messages to some, and replaces or delays few: a connection on which nothing works shows little.
   *
   * @param part The part of the messages that are changed now.
   * @param count Called with the number of changes.
   */
  change(part: () => number, count: (changes: number) => void): Change {
    let late: string | undefined;
    return (text) => {
      const before = late === undefined ? [] : [late];
      late = undefined;
      if (text.length > 100_000 || !this.#random.chance(part())) return [...before, text];
      const added = this.#added(text);
      const isReplaced = this.#random.chance(1 / REPLACED);
      count(added.length + Number(isReplaced));
      if (!isReplaced) return [...before, text, ...added];
      if (this.#random.chance(0.5)) return [...before, this.#mutated(text), ...added];
      // After the next message.
      late = text;
      return [...before, ...added];
    };
  }

  #added(text: string): string[] {
    const random = this.#random;
    const added: string[] = [];
    const isEvent = /"method":/.test(text.slice(0, 300));
    if (isEvent && this.#seen.length < REMEMBERED) this.#seen.push(text);
    const session = /"sessionId":"([^"]+)"/.exec(text)?.[1];
    if (session !== undefined && this.#sessions.length < REMEMBERED) this.#sessions.push(session);
    for (let more = random.between(1, 5); more > 0; more--) {
      const kind = random.next();
      if (kind < 0.5 && this.#events.length > 0) added.push(this.#invented());
      else if (kind < 0.75 && this.#seen.length > 0) added.push(random.pick(this.#seen));
      // A changed response to a command that has one already.
      else if (isEvent || kind > 0.95) added.push(this.#mutated(text));
    }
    return added;
  }

  #mutated(text: string): string {
    const message = JSON.parse(text) as Fields;
    let place = message;
    // A message without its own parts ends the connection.
    for (let depth = this.#random.between(this.#random.chance(0.005) ? 0 : 1, 4); depth > 0; depth--) {
      const inner = Object.values(place).filter((one) => typeof one === 'object' && one !== null);
      if (inner.length === 0) break;
      place = this.#random.pick(inner) as Fields;
    }
    const names = place === message ? [] : Object.keys(place);
    if (names.length === 0) return text;
    const name = this.#random.pick(names);
    if (this.#random.chance(0.2)) delete place[name];
    else place[name] = this.#value();
    return JSON.stringify(message);
  }

  /** An event that this library, or a library above it, reads. */
  #invented(): string {
    const [method, all] = this.#random.pick(this.#events)(this);
    // It ends the connection.
    const params = this.#random.chance(0.002) ? null : this.fields(all);
    const isOfSession = this.#sessions.length > 0 && this.#random.chance(0.5);
    return JSON.stringify({
      ...(this.#isBidi && { type: 'event' }),
      method,
      params,
      ...(isOfSession && { sessionId: this.#random.pick(this.#sessions) }),
    });
  }

  /** Some wrong, some missing. */
  fields(all: Fields): Fields {
    return Object.fromEntries(
      Object.entries(all).flatMap(([name, value]) => {
        if (this.#random.chance(0.1)) return [];
        return [[name, this.#random.chance(0.1) ? this.#value() : value]];
      }),
    );
  }

  get text(): string {
    return this.#random.pick(this.#texts);
  }

  get guid(): string {
    return `d0000000-0000-4000-8000-00000000000${this.#random.between(0, 9)}`;
  }

  #value(): unknown {
    const kind = this.#random.between(0, 9);
    if (kind < 6) return this.#random.pick(VALUES);
    return kind < 9 ? this.text : 'x'.repeat(100_000);
  }
}

const CDP_EVENTS: readonly ((one: Fuzzer) => readonly [string, Fields])[] = [
  (one) => [
    'Browser.downloadWillBegin',
    { guid: one.guid, url: one.text, suggestedFilename: one.text, frameId: 'f' },
  ],
  (one) => [
    'Browser.downloadProgress',
    { guid: one.guid, state: 'completed', filePath: one.text, receivedBytes: 1, totalBytes: 1 },
  ],
  (one) => {
    const request = one.fields({ url: one.text, method: 'GET', headers: {}, hasPostData: false });
    return ['Fetch.requestPaused', { requestId: 'r', frameId: 'f', request, resourceType: 'Document' }];
  },
  (one) => [
    'Target.attachedToTarget',
    { sessionId: 's', targetInfo: { targetId: 't', type: 'page', url: one.text }, waitingForDebugger: false },
  ],
  () => ['Target.detachedFromTarget', { sessionId: 's' }],
  (one) => ['Page.downloadWillBegin', { guid: one.guid, url: one.text }],
  (one) => [
    'Runtime.bindingCalled',
    { name: '__playwright__binding__', payload: JSON.stringify([one.text]), executionContextId: 1 },
  ],
];

const BIDI_EVENTS: typeof CDP_EVENTS = [
  (one) => [
    'browsingContext.contextCreated',
    { context: one.guid, url: one.text, children: null, parent: null, userContext: 'default' },
  ],
  (one) => ['browsingContext.contextDestroyed', { context: one.guid, url: one.text, children: [] }],
  (one) => ['browsingContext.load', { context: one.guid, navigation: one.guid, url: one.text, timestamp: 1 }],
  (one) => [
    'browsingContext.downloadWillBegin',
    { context: one.guid, suggestedFilename: one.text, url: one.text },
  ],
  (one) => ['browsingContext.userPromptOpened', { context: one.guid, type: 'alert', message: one.text }],
  (one) => [
    'network.beforeRequestSent',
    {
      context: one.guid,
      isBlocked: true,
      request: one.fields({ request: 'r', url: one.text, method: 'GET', headers: [], cookies: [] }),
    },
  ],
  (one) => ['script.realmCreated', { realm: 'r', type: 'window', origin: one.text, context: one.guid }],
  (one) => [
    'script.message',
    { channel: one.text, data: { type: 'string', value: one.text }, source: { realm: 'r' } },
  ],
  (one) => [
    'log.entryAdded',
    { type: 'console', level: 'info', text: one.text, args: [], source: { realm: 'r' } },
  ],
];

const DRIVERS = ['Playwright over CDP', 'Puppeteer over CDP', 'Puppeteer over BiDi'] as const;

/** What the fuzz has shown of one driver. */
export interface FuzzRow {
  readonly driver: (typeof DRIVERS)[number];
  messages: number;
  leases: number;
  /** Calls of the callbacks, and those that succeeded in time: otherwise the fuzz would test little. */
  calls: number;
  answered: number;
  /** How the runs ended: the number of each name of an error, or of a success. */
  readonly ends: Record<string, number>;
}

/** A fault. */
export interface FuzzFinding {
  readonly what:
    | 'lost lease'
    | 'unhandled rejection of this library'
    | 'unhandled rejection of an automation library'
    | 'known fault of an automation library'
    | 'connection to another address'
    | 'copy of the canary file'
    | 'wrong error';
  readonly text: string;
}

/**
 * Faults of automation libraries that happen without this library, too, by a part of their stack: Puppeteer begins to transfer a
 * handle, waits until the old one is disposed of, and only then for the transfer, which can have failed.
 */
const KNOWN: readonly RegExp[] = [/BidiFrameRealm\.evaluateHandle/];

/** The calls that the pages of all drivers have. */
interface FuzzedPage {
  goto(url: string, options: { timeout: number }): Promise<unknown>;
  evaluate(code: string): Promise<unknown>;
  click(selector: string): Promise<unknown>;
  title(): Promise<unknown>;
  screenshot(): Promise<unknown>;
}

interface FuzzedBrowser {
  newPage(): Promise<FuzzedPage>;
}

/** A lease, and what its connections share. */
interface FuzzedLease {
  readonly row: FuzzRow;
  readonly random: Random;
  changes: number;
  hasBegun: boolean;
}

interface FuzzPlan {
  /** Number of changed messages, of all drivers. */
  readonly messages: number;
  readonly seed: number;
  /** Milliseconds after which no further lease begins. */
  readonly time: number;
  /** Called with each fault at once. */
  readonly onFinding: (finding: FuzzFinding) => void;
  /** Called with the figures, which change, at the beginning. */
  readonly onStart?: (rows: readonly FuzzRow[]) => void;
}

/** Leases browsers over connections that change messages, until this many were changed. Resolves to the figures. */
export async function fuzz({ messages, seed, time, onFinding, onStart }: FuzzPlan): Promise<FuzzRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-'));
  const canary = join(folder, 'canary');
  await writeFile(canary, CANARY);
  const report = (what: FuzzFinding['what'], text: string) => onFinding({ what, text });
  // An address of this machine that nobody exposes.
  const trap = createServer((socket) => {
    report('connection to another address', `from port ${socket.remotePort}`);
    socket.destroy();
  }).listen(0, '127.0.0.2');
  await once(trap, 'listening');
  const trapHost = `127.0.0.2:${(trap.address() as AddressInfo).port}`;
  await using app = await startApp();
  const texts = [
    `http://${trapHost}/`,
    `http://${trapHost}\\path?x=@${app.host}/`,
    `http://${trapHost}?@${app.host}/`,
    `ws://${trapHost}/`,
    `http://${app.host}@${trapHost}/`,
    `http://${app.host}/`,
    canary,
    `../../../../../../..${canary}`,
    `file://${canary}`,
    'completed',
    '__proto__',
  ];
  // The browser may open what its client asks for: it is another machine's.
  const harmless = ['completed', '__proto__', 'about:blank'];
  const rows = DRIVERS.map((driver): FuzzRow => ({
    driver,
    messages: 0,
    leases: 0,
    calls: 0,
    answered: 0,
    ends: {},
  }));
  onStart?.(rows);
  const total = () => rows.reduce((sum, row) => sum + row.messages, 0);
  const leases: FuzzedLease[] = [];
  /** The sessions that are leased. */
  const leased = new Set<string>();
  const onLog = (event: LocalPoolEvent) => {
    if (event.type === 'leased') leased.add(event.sessionId);
    else if (event.type === 'released') leased.delete(event.sessionId);
    // Nothing is left of a lease whose browser has crashed.
    else if (event.type === 'browser-destroyed' && event.reason === 'exited') leased.delete(event.sessionId);
  };
  const pools = [{ name: 'test', size: SIDE_BY_SIDE + 1, timeoutSeconds: 60 }];
  await using local = await startLocalPool({ pools, onLog });
  await using relay = await CdpRelay.start((path) => decodeURIComponent(path.split('/')[3]!));
  relay.changes = (path) => {
    const [, number, protocol] = path.split('/');
    const lease = leases[Number(number)]!;
    const isBidi = protocol === 'bidi';
    const part = () => {
      if (lease.changes >= CHANGES) return 0;
      return lease.hasBegun ? PART.after : PART.before;
    };
    const count = (changes: number) => {
      lease.changes += changes;
      lease.row.messages += changes;
    };
    const { random } = lease;
    const toClient = new Fuzzer(random, texts, isBidi ? BIDI_EVENTS : CDP_EVENTS, isBidi);
    const toBrowser = new Fuzzer(random, harmless, [], isBidi).change(part, count);
    return {
      toClient: toClient.change(part, count),
      toBrowser: (text) => {
        lease.hasBegun ||= text.includes(BEGIN);
        if (text.includes(CANARY) || text.includes(ENCODED))
          report('copy of the canary file', 'in a message');
        return toBrowser(text);
      },
    };
  };
  const through = (protocol: string, url: string | undefined) =>
    url && `ws://127.0.0.1:${relay.port}/${leases.length - 1}/${protocol}/${encodeURIComponent(url)}`;
  /** Each lease has a number, by which its connections are known. */
  const poolOf = (row: FuzzRow) => {
    const grant: typeof kernel.grant = (...args) => {
      const granted = kernel.grant(...args);
      leases.push({ row, random: new Random(seed * 100_000 + leases.length), changes: 0, hasBegun: false });
      row.leases++;
      return {
        ...granted,
        cdpUrl: through('cdp', granted.cdpUrl),
        bidiUrl: through('bidi', granted.bidiUrl),
      };
    };
    const { baseUrl, token } = local;
    return {
      row,
      running: 0,
      pool: new BrowserPool('test', { service: { ...kernel, grant }, baseUrl, token }),
    };
  };
  const entries = rows.map(poolOf);
  const stopListening = listenToRejections(report);
  const began = performance.now();
  const isOver = () => total() >= messages || performance.now() - began > time;
  let runs = 0;
  const lane = async () => {
    while (!isOver()) {
      // The driver with the fewest changes.
      const expected = ({ row, running }: (typeof entries)[number]) => row.messages + running * CHANGES;
      const entry = entries.toSorted((one, other) => expected(one) - expected(other))[0]!;
      const { row, pool } = entry;
      entry.running++;
      const number = ++runs;
      const options = {
        acquireTimeout: 60_000,
        connectTimeout: 10_000,
        timeout: 2 * CALLBACK_TIME,
        releaseTimeout: 30_000,
        exposeNetwork: app.host,
        downloads: join(folder, `downloads-${number}`),
        // A screenshot of a page that does not answer takes 10 s.
        artifacts: {
          folder: join(folder, `artifacts-${number}`),
          on: 'always',
          screenshot: number % 5 === 0,
        } as const,
      };
      const end = await runOnce(row, pool, options, app.host).then(
        () => 'returned',
        (error: unknown) => {
          if (!isPooledBrowserError(error) || error.name === 'AcquireTimeoutError')
            report('wrong error', error instanceof Error ? String(error.stack) : String(error));
          const { name = 'no error', reason = '' } = Object(error) as { name?: string; reason?: string };
          return `${name} ${reason}`.trim();
        },
      );
      row.ends[end] = (row.ends[end] ?? 0) + 1;
      entry.running--;
    }
  };
  try {
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
    await Promise.all(entries.map(({ pool }) => pool.close()));
    for (const sessionId of leased) report('lost lease', sessionId);
    await findCopies(folder, canary, report);
  } finally {
    stopListening();
    trap.close();
    await rm(folder, { recursive: true });
  }
  return rows;
}

/** One run. Its callback returns in time, whatever the browser does. */
async function runOnce(
  row: FuzzRow,
  pool: BrowserPool,
  options: Omit<RunOptions, 'protocol'>,
  host: string,
): Promise<unknown> {
  const work = async ({ page: first, browser }: { page: FuzzedPage; browser: FuzzedBrowser }) => {
    const end = performance.now() + CALLBACK_TIME;
    let page = first;
    let unanswered = 0;
    const call = async (work: () => Promise<unknown>) => {
      row.calls++;
      const settled = work().then(
        () => true,
        () => false,
      );
      const isAnswered = await Promise.race([settled, sleep(CALL_TIMEOUT, false)]);
      row.answered += Number(isAnswered);
      unanswered = isAnswered ? 0 : unanswered + 1;
    };
    await call(() => page.evaluate(`'${BEGIN}'`));
    const steps: readonly (() => Promise<unknown>)[] = [
      () => page.goto(`http://${host}/`, { timeout: CALL_TIMEOUT }),
      () => page.evaluate(`new WebSocket('ws://${host}/').onerror = () => {}; console.log({}); 0`),
      () => page.evaluate(`document.querySelector('a').click(); setTimeout(() => { throw Error() }); 0`),
      () => page.evaluate(`open('/pop-up').close(); 0`),
      () => page.evaluate(`document.body.append(document.createElement('iframe')); 0`),
      () => page.click('input[type=button]'),
      () => page.title(),
      () => page.screenshot(),
    ];
    const changes = row.messages;
    for (let step = 0; performance.now() < end && row.messages < changes + CHANGES; step++) {
      await call(steps[step % steps.length]!);
      if (unanswered < MOST_UNANSWERED) continue;
      const opened = await Promise.race([browser.newPage().catch(() => {}), sleep(2 * CALL_TIMEOUT)]);
      if (!opened) return;
      page = opened;
      unanswered = 0;
    }
  };
  if (row.driver === 'Playwright over CDP') return playwright.withPooledBrowser(pool, work, options);
  const protocol = row.driver === 'Puppeteer over BiDi' ? 'bidi' : 'cdp';
  return puppeteer.withPooledBrowser(pool, work, { ...options, protocol });
}

async function startApp(): Promise<AsyncDisposable & { host: string }> {
  const app = createHttpServer((request, response) => {
    if (request.url === '/file') response.setHeader('content-disposition', 'attachment; filename=file');
    response
      .setHeader('content-type', 'text/html')
      .end('<title>app</title><a href=/file>file</a><input type=file><input type=button>');
  }).listen(0, '127.0.0.1');
  await once(app, 'listening');
  return {
    host: hostOf(app),
    [Symbol.asyncDispose]: async () => {
      app.closeAllConnections();
      app.close();
    },
  };
}

function hostOf(server: Server): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Reports rejections and exceptions that nobody handles, also those that are handled later: Node ends a process at once. */
function listenToRejections(report: (what: FuzzFinding['what'], text: string) => void): () => void {
  const listeners = process.rawListeners('unhandledRejection');
  const exceptions = process.rawListeners('uncaughtException');
  process.removeAllListeners('unhandledRejection').removeAllListeners('uncaughtException');
  const note = (error: unknown) => {
    const stack = error instanceof Error ? String(error.stack) : String(error);
    const frames = stack.split('\n').filter((line) => /^\s+at /.test(line) && !line.includes('node:'));
    const isOurs = frames.length === 0 || !frames[0]!.includes('node_modules');
    const isKnown = KNOWN.some((one) => one.test(stack));
    report(
      isKnown
        ? 'known fault of an automation library'
        : `unhandled rejection of ${isOurs ? 'this' : 'an automation'} library`,
      stack,
    );
  };
  const noteLate = () => {};
  process.on('unhandledRejection', note).on('uncaughtException', note).on('rejectionHandled', noteLate);
  return () => {
    process.off('rejectionHandled', noteLate);
    process.removeAllListeners('unhandledRejection').removeAllListeners('uncaughtException');
    for (const one of listeners) process.on('unhandledRejection', one as never);
    for (const one of exceptions) process.on('uncaughtException', one as never);
  };
}

/** Looks for the content of the canary in all files that were written. */
async function findCopies(
  folder: string,
  canary: string,
  report: (what: FuzzFinding['what'], text: string) => void,
): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    const text = await readFile(join(folder, name), 'latin1').catch(() => '');
    if (name !== 'canary' && text.includes(CANARY)) report('copy of the canary file', name);
  }
  if ((await readFile(canary, 'utf8')) !== CANARY) report('copy of the canary file', 'it was changed');
}
