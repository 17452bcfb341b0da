import { createServer as createHttpServer, type Server } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrowserPool, isPooledBrowserError } from '../../src/index.js';
import { startLocalPool } from '../../src/local.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { kernel } from '../../src/services.js';
import { CdpRelay, type Change } from './cdp-relay.js';
import { Random } from './random.js';

/** What only the canary file contains. */
const CANARY = 'the content of the canary file';
const ENCODED = Buffer.from(CANARY).toString('base64').slice(0, 30);
/** Messages that are remembered, to send them again. */
const REMEMBERED = 50;
/** One message of this many is replaced or delayed. */
const REPLACED = 1000;
/** The first command of a callback: the connect is over, and changes begin. */
const BEGIN = 'the changes begin';
/** Leases at the same time. */
const SIDE_BY_SIDE = 4;
/** Calls of one callback, and the time for each, in ms. */
const CALLS = 60;
const CALL_TIMEOUT = 1500;

/** Wrong in most places. */
const VALUES: readonly unknown[] = [null, true, -1, 2 ** 53, 1e308, '', [], {}, [null], { a: { b: [] } }];

interface Fields {
  [name: string]: unknown;
}

/** Changes messages as a hostile browser, or a hostile client, would. */
export class Fuzzer {
  changed = 0;
  readonly #random: Random;
  readonly #texts: readonly string[];
  readonly #seen: string[] = [];
  readonly #invents: boolean;

  /** @param texts Values that lead to the canaries. */
  constructor(random: Random, texts: readonly string[], invents = true) {
    this.#random = random;
    this.#texts = texts;
    this.#invents = invents;
  }

  /** Adds messages to each one, and replaces or delays few: a connection on which nothing works shows little. */
  connection(hasBegun = () => true): Change {
    let late: string | undefined;
    return (text) => {
      // Most connects succeed, so that the callbacks meet the others.
      if (!this.#random.chance(hasBegun() ? 0.2 : 0.001)) return [text];
      const sent = [text, ...(late === undefined ? [] : [late])];
      const changed = this.#change(text, sent);
      late = changed === undefined ? text : undefined;
      return changed ?? sent.slice(1);
    };
  }

  /** Returns undefined to send the message after the next one. */
  #change(text: string, sent: string[]): readonly string[] | undefined {
    const random = this.#random;
    if (text.length > 100_000) return sent;
    const isEvent = /"method":/.test(text.slice(0, 300));
    if (isEvent && this.#seen.length < REMEMBERED) this.#seen.push(text);
    for (let more = random.between(1, 5); more > 0; more--) {
      const kind = random.next();
      if (kind < 0.5) sent.push(...(this.#invents ? [this.#invented()] : []));
      else if (kind < 0.75 && this.#seen.length > 0) sent.push(random.pick(this.#seen));
      else if (isEvent || kind > 0.99) sent.push(this.#mutated(text));
    }
    this.changed += sent.length - 1;
    if (!random.chance(1 / REPLACED)) return sent;
    this.changed++;
    return random.chance(0.5) ? [this.#mutated(text), ...sent.slice(1)] : undefined;
  }

  #mutated(text: string): string {
    const message = JSON.parse(text) as Fields;
    let place = message;
    // A message without its own parts ends the connection.
    for (let depth = this.#random.between(this.#random.chance(0.02) ? 0 : 1, 4); depth > 0; depth--) {
      const inner = Object.values(place).filter((one) => typeof one === 'object' && one !== null);
      if (inner.length === 0) break;
      place = this.#random.pick(inner) as Fields;
    }
    const names = Object.keys(place);
    if (names.length === 0) return text;
    const name = this.#random.pick(names);
    if (this.#random.chance(0.2)) delete place[name];
    else place[name] = this.#value();
    return JSON.stringify(message);
  }

  /** An event that this library reads, with some wrong fields. */
  #invented(): string {
    const text = () => this.#random.pick(this.#texts);
    const fields = (all: Fields): Fields =>
      Object.fromEntries(
        Object.entries(all).flatMap(([name, value]) => {
          if (this.#random.chance(0.1)) return [];
          return [[name, this.#random.chance(0.1) ? this.#value() : value]];
        }),
      );
    const guid = `d0000000-0000-4000-8000-00000000000${this.#random.between(0, 9)}`;
    const request = () => fields({ url: text(), method: 'GET', headers: {}, hasPostData: false });
    const [method, params] = this.#random.pick([
      ['Browser.downloadWillBegin', fields({ guid, url: text(), suggestedFilename: text(), frameId: 'f' })],
      [
        'Browser.downloadProgress',
        fields({ guid, state: 'completed', filePath: text(), receivedBytes: 1, totalBytes: 1 }),
      ],
      [
        'Fetch.requestPaused',
        fields({ requestId: 'r', frameId: 'f', request: request(), resourceType: 'Document' }),
      ],
      [
        'Target.attachedToTarget',
        fields({ sessionId: 's', targetInfo: { targetId: 't', type: 'page', url: text() } }),
      ],
      ['Target.detachedFromTarget', fields({ sessionId: 's' })],
      ['Page.downloadWillBegin', fields({ guid, url: text() })],
      [
        'Runtime.bindingCalled',
        fields({ name: '__playwright__binding__', payload: JSON.stringify([text()]), executionContextId: 1 }),
      ],
    ] as const);
    return JSON.stringify({ method, params: this.#random.chance(0.05) ? null : params });
  }

  #value(): unknown {
    const kind = this.#random.between(0, 9);
    if (kind < 6) return this.#random.pick(VALUES);
    return kind < 9 ? this.#random.pick(this.#texts) : 'x'.repeat(100_000);
  }
}

/** What a run of the fuzz has shown. From `lost` on, all must be 0. */
export interface FuzzFigures {
  readonly messages: number;
  readonly calls: number;
  readonly leases: number;
  /** Callbacks that a change ended. */
  readonly failed: number;
  readonly leased: number;
  readonly released: number;
  readonly lost: number;
  readonly rejections: readonly string[];
  /** Errors that the automation libraries themselves did not catch. */
  readonly ofLibraries: readonly string[];
  readonly connections: number;
  readonly copies: number;
  readonly wrongErrors: readonly string[];
}

/** The calls that the pages of all drivers have. */
interface FuzzedPage {
  goto(url: string, options: { timeout: number }): Promise<unknown>;
  evaluate(code: string): Promise<unknown>;
  click(selector: string): Promise<unknown>;
  title(): Promise<unknown>;
  screenshot(): Promise<unknown>;
}

const DRIVERS = ['playwright', 'puppeteer over CDP', 'puppeteer over BiDi'] as const;

/** Leases browsers over a connection that changes messages, until this many were changed. */
export async function fuzz({ messages, seed }: { messages: number; seed: number }): Promise<FuzzFigures> {
  const folder = await mkdtemp(join(tmpdir(), 'fuzz-'));
  const canary = join(folder, 'canary');
  await writeFile(canary, CANARY);
  // Addresses of this machine that nobody exposes.
  let connections = 0;
  const trap = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.2');
  await once(trap, 'listening');
  const trapHost = `127.0.0.2:${(trap.address() as AddressInfo).port}`;
  const app = createHttpServer((request, response) => {
    if (request.url === '/file') response.setHeader('content-disposition', 'attachment; filename=file');
    response
      .setHeader('content-type', 'text/html')
      .end('<title>app</title><a href=/file>file</a><input type=file><input type=button>');
  }).listen(0, '127.0.0.1');
  await once(app, 'listening');
  const appHost = hostOf(app);
  const texts = [
    `http://${trapHost}/`,
    `http://${trapHost}\\path?x=@${appHost}/`,
    `http://${trapHost}?@${appHost}/`,
    `ws://${trapHost}/`,
    `http://${appHost}@${trapHost}/`,
    `http://${appHost}/`,
    canary,
    `../../../../../../..${canary}`,
    `file://${canary}`,
    'completed',
    '__proto__',
  ];
  const random = new Random(seed);
  const events = new Fuzzer(random, texts);
  // The browser may open what its client asks for: it is another machine's.
  const commands = new Fuzzer(random, ['completed', '__proto__', 'about:blank'], false);
  let copies = 0;
  const logged: Record<string, number> = {};
  await using local = await startLocalPool({
    pools: [{ name: 'test', size: SIDE_BY_SIDE, timeoutSeconds: 30 }],
    onLog: ({ type }) => (logged[type] = (logged[type] ?? 0) + 1),
  });
  await using relay = await CdpRelay.start((path) => decodeURIComponent(path.slice(1)));
  relay.changes = () => {
    let hasBegun = false;
    const toBrowser = commands.connection(() => hasBegun);
    return {
      toClient: events.connection(() => hasBegun),
      toBrowser: (text) => {
        hasBegun ||= text.includes(BEGIN);
        if (text.includes(CANARY) || text.includes(ENCODED)) copies++;
        return toBrowser(text);
      },
    };
  };
  const through = (url: string | undefined) =>
    url && `ws://127.0.0.1:${relay.port}/${encodeURIComponent(url)}`;
  const service = {
    ...kernel,
    grant: (...args: Parameters<typeof kernel.grant>) => {
      const grant = kernel.grant(...args);
      return { ...grant, cdpUrl: through(grant.cdpUrl), bidiUrl: through(grant.bidiUrl) };
    },
  };
  const { baseUrl, token } = local;
  const pool = new BrowserPool('test', { service, baseUrl, token });
  const rejections: string[] = [];
  const ofLibraries: string[] = [];
  const note = (error: unknown) => {
    const stack = error instanceof Error ? String(error.stack) : String(error);
    const isOurs =
      /\/src\/(?!.*node_modules)/.test(stack.replaceAll(/.*node_modules.*/g, '')) &&
      !/node_modules/.test(stack.split('\n')[1] ?? '');
    (isOurs ? rejections : ofLibraries).push(stack.split('\n').slice(0, 3).join(' '));
  };
  const listeners = process.rawListeners('unhandledRejection');
  const exceptions = process.rawListeners('uncaughtException');
  process.removeAllListeners('unhandledRejection').removeAllListeners('uncaughtException');
  process.on('unhandledRejection', note).on('uncaughtException', note);
  const wrongErrors: string[] = [];
  let leases = 0;
  let failed = 0;
  let calls = 0;
  const run = async () => {
    while (events.changed + commands.changed < messages) {
      const driver = DRIVERS[leases++ % DRIVERS.length]!;
      const options = {
        acquireTimeout: 60_000,
        connectTimeout: 15_000,
        timeout: 10_000,
        releaseTimeout: 10_000,
        exposeNetwork: appHost,
        downloads: join(folder, `downloads-${leases}`),
        artifacts: { folder: join(folder, `artifacts-${leases}`), on: 'always' as const },
      };
      const work = async ({ page }: { page: FuzzedPage }) => {
        await page.evaluate(`'${BEGIN}'`);
        const steps: readonly (() => Promise<unknown>)[] = [
          () => page.goto(`http://${appHost}/`, { timeout: CALL_TIMEOUT }),
          () => page.evaluate(`new WebSocket('ws://${appHost}/').onerror = () => {}; console.log({}); 0`),
          () => page.evaluate(`document.querySelector('a').click(); setTimeout(() => { throw Error() }); 0`),
          () => page.evaluate(`open('/pop-up').close(); 0`),
          () => page.evaluate(`document.body.append(document.createElement('iframe')); 0`),
          () => page.click('input[type=button]'),
          () => page.title(),
          () => page.screenshot(),
        ];
        for (let call = 0; call < CALLS && events.changed + commands.changed < messages; call++) {
          calls++;
          const timer = new Promise((resolve) => setTimeout(resolve, CALL_TIMEOUT));
          await Promise.race([steps[call % steps.length]!().catch(() => {}), timer]);
        }
      };
      try {
        if (driver === 'playwright') await playwright.withPooledBrowser(pool, work, options);
        else
          await puppeteer.withPooledBrowser(pool, work, {
            ...options,
            protocol: driver === 'puppeteer over BiDi' ? 'bidi' : 'cdp',
          });
      } catch (error) {
        failed++;
        if (process.env['FUZZ_DEBUG'])
          console.error(
            driver,
            events.changed + commands.changed,
            String(error).slice(0, 200),
            (error as Error).name,
          );
        if (!(error instanceof Error)) wrongErrors.push(String(error));
        if (isPooledBrowserError(error) && error.name === 'AcquireTimeoutError')
          wrongErrors.push(String(error));
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, run));
  } finally {
    await pool.close();
    process.removeAllListeners('unhandledRejection').removeAllListeners('uncaughtException');
    for (const one of listeners) process.on('unhandledRejection', one as never);
    for (const one of exceptions) process.on('uncaughtException', one as never);
    app.closeAllConnections();
    app.close();
    trap.close();
  }
  for (const name of await readdir(folder, { recursive: true }))
    if (name !== 'canary' && (await readFile(join(folder, name), 'latin1').catch(() => '')).includes(CANARY))
      copies++;
  if ((await readFile(canary, 'utf8')) !== CANARY) copies++;
  await rm(folder, { recursive: true });
  const { leased = 0, released = 0 } = logged;
  const lost = leased - released;
  return {
    messages: events.changed + commands.changed,
    calls,
    leases,
    failed,
    leased,
    released,
    lost,
    rejections,
    ofLibraries,
    connections,
    copies,
    wrongErrors,
  };
}

function hostOf(server: Server): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
