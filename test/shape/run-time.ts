import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Debugger, Profiler } from 'node:inspector';
import { Session as Inspector } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CDPSession } from 'playwright-core';
import { WebSocket } from 'ws';
import { BrowserPool } from '../../src/index.js';
import { withPooledBrowser, type PlaywrightHandles } from '../../src/playwright.js';
import { Wire } from '../../src/wire/wire.js';
import { tablesOfSource, type Found, type Wanted } from './heap.js';

/** How many events and commands pass. Nothing else of a lease happens as often. */
const MANY = 5000;
/** How many commands of the library, and of this library itself, have no answer. */
const FEW = 1000;

/** Where a function begins: a file below src/, without its ending, a line and a column from 0. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Calls {
  /** What was called for each event that no feature wants. */
  readonly event: readonly Place[];
  /** What was called for each response to a command of the library. */
  readonly response: readonly Place[];
}

export interface Measured {
  /** In a lease without an option, and in one with each feature. */
  bare: Calls;
  full: Calls;
  /** With each feature: what has the ids of open sessions and targets, and what has grown with the commands in flight. */
  readonly lease: Found;
  /** The same in the process of the local pool. */
  readonly pool: Found;
}

/** Measures a lease without an option, and one with each feature. */
export async function measureLeases(): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('pool-process.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
    serialization: 'advanced',
  });
  const folder = mkdtempSync(join(tmpdir(), 'shape-'));
  try {
    const [service] = (await once(child, 'message')) as [{ baseUrl: string; token: string }];
    const pool = new BrowserPool('shape', service);
    const all = {
      allowedHosts: '*.test',
      exposeNetwork: 'localhost:1',
      downloads: folder,
      artifacts: { folder, trace: true },
      replays: 'record',
      startUrl: 'about:blank',
    } as const;
    const measured: Partial<Measured> = {};
    const look = async (wanted: Wanted) => {
      // Both begin at once: a process that is busy for long loses its connections, and with them what waits for answers.
      child.send(wanted);
      const [lease, [ofPool]] = await Promise.all([tablesOfSource(wanted), once(child, 'message')]);
      Object.assign(measured, { lease, pool: ofPool as Found });
    };
    const run = (name: 'bare' | 'full', options: object) =>
      withPooledBrowser(
        pool,
        async (lease) => {
          measured[name] = await callsOf(lease);
          if (name === 'full') await holdCommands(lease, look);
        },
        { ...options, release: 'destroy' },
      );
    await run('bare', {});
    // Reading the memory can take longer than a connection may be silent.
    await run('full', all).catch((error: unknown) => {
      if (!measured.pool) throw error;
    });
    await pool.close();
    return measured as Measured;
  } finally {
    child.disconnect();
    rmSync(folder, { recursive: true });
  }
}

type LeaseOfPage = PlaywrightHandles & { readonly session: { readonly cdp_ws_url: string } };

async function callsOf({ page, context }: LeaseOfPage): Promise<Calls> {
  await context.newPage();
  await page.evaluate("void new Worker('data:text/javascript,')");
  const session = await context.newCDPSession(page);
  return { event: await eventsOf(session), response: await responsesOf(session) };
}

/** Looks at the memory while commands have no answer. */
async function holdCommands(
  { page, context, session: { cdp_ws_url } }: LeaseOfPage,
  look: (wanted: Wanted) => Promise<void>,
): Promise<void> {
  const session = await context.newCDPSession(page);
  const { own } = await Wire.open(new URL(cdp_ws_url), new AbortController().signal);
  const { targetInfo } = await session.send('Target.getTargetInfo');
  const id = await own.attach(targetInfo.targetId);
  const params = { expression: 'new Promise(() => {})', awaitPromise: true };
  for (let at = 0; at < FEW; at++) {
    session.send('Runtime.evaluate', params).catch(() => {});
    own.send('Runtime.evaluate', params, id).catch(() => {});
  }
  await session.send('Runtime.evaluate', { expression: '0' });
  await look({ keys: ids, capacity: FEW });
}

async function eventsOf(session: CDPSession): Promise<Place[]> {
  const calls = new Counter();
  await session.send('DOM.enable');
  await session.send('DOM.getDocument');
  let count = 0;
  const all = new Promise<void>((resolve) =>
    session.on('DOM.attributeModified', () => void (++count === MANY && resolve())),
  );
  await calls.begin();
  const expression = `for (let at = 0; at < ${MANY}; at++) document.body.setAttribute('at', at)`;
  await session.send('Runtime.evaluate', { expression });
  await all;
  return calls.end();
}

/** The commands of the library wait in the browser, so that nothing but their responses passes while the calls are counted. */
async function responsesOf(session: CDPSession): Promise<Place[]> {
  const expression = 'globalThis.answer ??= new Promise((resolve) => (globalThis.give = resolve))';
  const params = { expression, awaitPromise: true };
  const answers = Array.from({ length: MANY }, () => session.send('Runtime.evaluate', params));
  await session.send('Runtime.evaluate', { expression: '0' });
  const calls = new Counter();
  await calls.begin();
  await session.send('Runtime.evaluate', { expression: 'give()' });
  await Promise.all(answers);
  return calls.end();
}

/** Ids of the open sessions and targets, as the browser has told them. */
const ids = new Set<string>();
const { emit } = WebSocket.prototype;
WebSocket.prototype.emit = function (this: WebSocket, ...args: [string, ...unknown[]]) {
  const text = args[0] === 'message' ? String(args[1]).slice(0, 2000) : '';
  const [, change, id] = /"method":"Target.(at|de)tached\w+","params":\{"sessionId":"(\w+)"/.exec(text) ?? [];
  const target = /"targetInfo":\{"targetId":"(\w+)"/.exec(text)?.[1];
  if (id !== undefined) ids[change === 'at' ? 'add' : 'delete'](id);
  if (change === 'at' && target !== undefined) ids.add(target);
  return Reflect.apply(emit, this, args);
};

/** Counts the calls of the functions of src. */
class Counter {
  readonly #inspector = new Inspector();
  readonly #scripts = new Map<string, Debugger.ScriptParsedEventDataType>();

  async begin(): Promise<void> {
    this.#inspector.connect();
    this.#inspector.on('Debugger.scriptParsed', ({ params }) => this.#scripts.set(params.scriptId, params));
    await this.#inspector.post('Debugger.enable');
    await this.#inspector.post('Profiler.enable');
    await this.#inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  /** The functions that were called at least `MANY` times since the beginning. */
  async end(): Promise<Place[]> {
    const { result } = await this.#inspector.post('Profiler.takePreciseCoverage');
    const places: Place[] = [];
    for (const script of result.filter(({ url }) => /\/src\/.*\.ts/.test(url)))
      for (const { functionName, ranges } of script.functions)
        if (ranges[0]!.count >= MANY)
          places.push(await this.#placeOf(script, ranges[0]!.startOffset, functionName));
    // What follows is as fast as without.
    await this.#inspector.post('Profiler.stopPreciseCoverage');
    this.#inspector.disconnect();
    return places;
  }

  /** The place in the source of a place in what tsx has made of it. */
  async #placeOf({ scriptId, url }: Profiler.ScriptCoverage, offset: number, name: string): Promise<Place> {
    const { scriptSource } = await this.#inspector.post('Debugger.getScriptSource', { scriptId });
    const map = /^data:.*?,(.*)$/.exec(this.#scripts.get(scriptId)?.sourceMapURL ?? '')?.[1];
    if (map === undefined) throw new Error(`${url} has no source map.`);
    const before = scriptSource.slice(0, offset).split('\n');
    const payload = JSON.parse(String(Buffer.from(map, 'base64'))) as ConstructorParameters<
      typeof SourceMap
    >[0];
    const entry = new SourceMap(payload).findEntry(before.length - 1, before.at(-1)!.length);
    if (!('originalLine' in entry)) throw new Error(`${url} does not map ${name}.`);
    const file = /\/src\/(.*)\.ts/.exec(url)![1]!;
    return { file, line: entry.originalLine, column: entry.originalColumn };
  }
}
