import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  serveProxy,
  type BrowserSession,
  type HandoffAnswer,
  type PoolProxy,
  type RunEvent,
} from '../../../src/index.js';
import * as playwright from '../../../src/playwright.js';
import * as puppeteer from '../../../src/puppeteer.js';
import { useLocalPool } from '../../support/local.js';
import { isWaiting, reply, useHandoffs } from './support.js';

const used = useLocalPool();
const handoffs = useHandoffs();

/** A client of CDP without a library. */
class RawClient {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #last = 0;

  static async open(url: string): Promise<RawClient> {
    const socket = new WebSocket(url.replace('http', 'ws'));
    await once(socket, 'open');
    return new RawClient(socket);
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const answer = JSON.parse(String(data)) as Answer & { id?: number };
      this.#waiting.get(answer.id ?? 0)?.(answer);
    });
    // What waits for an answer gets none.
    socket.on('close', () => this.#waiting.forEach((settle) => settle({ error: { message: 'closed' } })));
    socket.on('error', () => {});
  }

  async send(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#last;
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    const { result, error } = await new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    if (error) throw new Error(error.message);
    return result!;
  }

  /** Opens a page. Returns a function that evaluates an expression there. */
  async openPage(): Promise<(expression: string) => Promise<unknown>> {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank#handed' });
    return this.evaluateIn(targetId as string);
  }

  async evaluateIn(targetId: string): Promise<(expression: string) => Promise<unknown>> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    return async (expression) => {
      const { result } = await this.send('Runtime.evaluate', { expression }, sessionId as string);
      return (result as { value: unknown }).value;
    };
  }

  close(): void {
    this.#socket.close();
  }
}

interface Answer {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** What an end acts on. */
interface Handed {
  readonly url: string;
  /** Another client of the same browser, which is not held. */
  readonly other: RawClient;
  /** Aborts the call: the whole one of a library, the request of a client of the proxy. */
  abort(): void;
  /** Ends the proxy. */
  stop?(): unknown;
}

/** What the one who has asked gets, a call that was held meanwhile, and how the call of the library ends. */
interface Ended {
  readonly answer: unknown;
  readonly held: unknown;
  readonly outcome: unknown;
}

interface Plan {
  /** Of the lease, in ms. */
  readonly lifetime?: number;
  /** Of the hand-off, in ms. */
  readonly timeout?: number;
  readonly end: (handed: Handed) => unknown;
}

type Expected = { readonly [Name in keyof Ended]: unknown };
type Caller = (plan: Plan) => Promise<Ended & { url: string }>;

/** The value, or the error as a text. */
const settle = (promise: Promise<unknown>) => promise.catch(String);

/** Notes the session of the browser that is leased. */
function listen() {
  let session: BrowserSession | undefined;
  const onEvent = (event: RunEvent) => {
    if (event.type === 'acquired') session = event.session;
    handoffs.onEvent(event);
  };
  return { onEvent, connect: () => RawClient.open(session!.cdp_ws_url) };
}

/** Asks as a client of the proxy does. Resolves to the answer, or rejects with the status and the error. */
async function ask({ url }: PoolProxy, request: object, signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(`${url}/agent/handoff`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request),
    ...(signal && { signal }),
  });
  const body = (await response.json()) as { error?: string };
  if (!response.ok) throw Object.assign(new Error(body.error), { name: String(response.status) });
  return body;
}

/** The callback of a library. */
const callbackOf =
  (library: typeof playwright): Caller =>
  async ({ end, timeout, lifetime }) => {
    const controller = new AbortController();
    const { onEvent, connect } = listen();
    const options = { onEvent, signal: controller.signal, ...(lifetime !== undefined && { lifetime }) };
    let ended: Promise<Omit<Ended, 'outcome'> & { url: string }> | undefined;
    const run = library.withPooledBrowser(
      used.pool,
      async ({ browser, handoff }) => {
        const page = await browser.newPage();
        // Without a second entry of the history, the page may close itself.
        await page.evaluate(`location.replace('#handed')`);
        const answer = settle(handoff({ message: 'Look.', ...(timeout !== undefined && { timeout }) }));
        const url = await handoffs.nextUrl();
        const call = settle(page.evaluate('1 + 1'));
        ended = Promise.all([answer, call]).then(([answer, held]) => ({ answer, held, url }));
        expect(await isWaiting(call)).toBe(true);
        const other = await connect();
        const abort = () => controller.abort(new Error('enough'));
        await end({ url, other, abort });
        await ended;
        other.close();
        return 'returned';
      },
      options,
    );
    const outcome = await settle(run.then(({ value }) => value));
    return { ...(await ended!), outcome };
  };

const CLIENT = 'A client of the proxy';
const CALLERS: Record<string, Caller> = {
  Playwright: callbackOf(playwright),
  Puppeteer: callbackOf(puppeteer as unknown as typeof playwright),
  [CLIENT]: async ({ end, timeout, lifetime }) => {
    const { onEvent, connect } = listen();
    await using proxy = await serveProxy(used.pool, {
      onEvent,
      ...(lifetime !== undefined && { lifetime }),
    });
    const client = await RawClient.open(`${proxy.url}/agent`);
    const evaluate = await client.openPage();
    const controller = new AbortController();
    const answer = settle(ask(proxy, { message: 'Look.', timeout }, controller.signal));
    const url = await handoffs.nextUrl();
    const call = settle(evaluate('1 + 1'));
    expect(await isWaiting(call)).toBe(true);
    const other = await connect();
    const abort = () => controller.abort(new Error('enough'));
    await end({ url, other, abort, stop: () => proxy.close() });
    const ended = { answer: await answer, held: await call, outcome: 'returned', url };
    other.close();
    client.close();
    return ended;
  },
};

/** Finds the page of another client. Returns a function that evaluates an expression there. */
async function attachToHanded(client: RawClient): Promise<(expression: string) => Promise<unknown>> {
  return client.evaluateIn((await handedPage(client))!.targetId);
}

async function handedPage(other: RawClient): Promise<{ targetId: string } | undefined> {
  const { targetInfos } = await other.send('Target.getTargets');
  return (targetInfos as { targetId: string; url: string }[]).find(({ url }) => url.endsWith('#handed'));
}

const CLOSED = /closed|Session with given id not found/;
const GOES_ON = { held: 2, outcome: 'returned' };
const answered = (answer: HandoffAnswer): Expected => ({ ...GOES_ON, answer });
const failed = (error: RegExp, outcome: unknown = expect.stringMatching(error)): Expected => ({
  answer: expect.stringMatching(error),
  held: expect.stringMatching(CLOSED),
  outcome,
});
const AFTER_CLOSE: Expected = {
  answer: { status: 'done', note: '' },
  held: expect.stringMatching(CLOSED),
  outcome: 'returned',
};

/** Each end with what follows for a library, and for a client of the proxy if that differs. */
const ENDS: Record<string, Plan & { expected: Expected; ofClient?: Expected }> = {
  Done: {
    end: ({ url }) => reply(url, { status: 'done', note: 'yes' }),
    expected: answered({ status: 'done', note: 'yes' }),
  },
  '"Cannot be done"': {
    end: ({ url }) => reply(url, { status: 'declined', note: 'no' }),
    expected: answered({ status: 'declined', note: 'no' }),
  },
  'no answer in time': {
    timeout: 2000,
    end: () => {},
    expected: { ...GOES_ON, answer: expect.stringMatching(/^HandoffTimeoutError: Nobody answered/) },
    ofClient: { ...GOES_ON, answer: expect.stringMatching(/^408: Nobody answered/) },
  },
  'an abort by the caller': {
    end: ({ abort }) => abort(),
    expected: failed(/^Error: enough$/),
    ofClient: { ...GOES_ON, answer: 'Error: enough' },
  },
  'the end of the lifetime': {
    lifetime: 8000,
    end: () => {},
    expected: failed(/^LeaseExpiredError: The lease reached its lifetime/),
    ofClient: failed(/^502: The lease reached its lifetime/, 'returned'),
  },
  'a crash of the browser': {
    end: ({ other }) => void settle(other.send('Browser.crash')),
    expected: failed(/^BrowserLostError: The browser was lost/),
    ofClient: failed(/^502: The (connection to the browser|browser) was lost/, 'returned'),
  },
  'a stop of the proxy': {
    end: ({ stop }) => stop?.(),
    expected: failed(/^502: The lease has ended/, 'returned'),
  },
  'a page that closes itself, and Done': {
    end: async ({ url, other }) => {
      const { targetId } = (await handedPage(other))!;
      const { sessionId } = await other.send('Target.attachToTarget', { targetId, flatten: true });
      // A page that closes may not answer.
      void settle(other.send('Runtime.evaluate', { expression: 'close()' }, sessionId as string));
      await expect.poll(() => handedPage(other)).toBeUndefined();
      await reply(url);
    },
    expected: AFTER_CLOSE,
  },
  'a page that the person closes, and Done': {
    end: async ({ url, other }) => {
      await other.send('Target.closeTarget', { targetId: (await handedPage(other))!.targetId });
      await expect.poll(() => handedPage(other)).toBeUndefined();
      await reply(url);
    },
    expected: AFTER_CLOSE,
  },
};

const CELLS = Object.entries(ENDS).flatMap(([end, plan]) =>
  Object.entries(CALLERS)
    .filter(([caller]) => end !== 'a stop of the proxy' || caller === CLIENT)
    .map(([caller, call]) => ({ end, caller, plan, call })),
);

it.each(CELLS)(
  '$caller: after $end, the caller and the calls that waited get a result, nothing listens, and the browser is released',
  async ({ caller, plan, call }) => {
    const { url, ...ended } = await call(plan);
    expect(ended).toEqual((caller === CLIENT && plan.ofClient) || plan.expected);
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    await expect.poll(() => used.local.stats().leased).toBe(0);
  },
);

it('a client of the proxy that reconnects during a hand-off waits for the answer as before', async () => {
  await using proxy = await serveProxy(used.pool, { onEvent: handoffs.onEvent });
  const first = await RawClient.open(`${proxy.url}/agent`);
  const evaluate = await first.openPage();
  const answer = ask(proxy, { message: 'Look.' });
  const url = await handoffs.nextUrl();
  const lost = settle(evaluate('1 + 1'));
  first.close();
  expect(await lost).toMatch(CLOSED);
  const second = await RawClient.open(`${proxy.url}/agent`);
  const call = (await attachToHanded(second))('2 + 2');
  expect(await isWaiting(call)).toBe(true);
  await reply(url);
  expect(await answer).toEqual({ status: 'done', note: '' });
  expect(await call).toBe(4);
  second.close();
});

it('a proxy that restarts during a hand-off refuses the request, and its successor finds the browser, where a client asks again', async () => {
  const keepFile = join(mkdtempSync(join(tmpdir(), 'handoff-')), 'kept.json');
  const { onEvent } = handoffs;
  const serve = () => serveProxy(used.pool, { keepFile, lifetime: 600_000, onEvent });
  const before = await serve();
  const first = await RawClient.open(`${before.url}/agent`);
  const evaluate = await first.openPage();
  const refused = settle(ask(before, { message: 'Look.' }));
  const url = await handoffs.nextUrl();
  const lost = settle(evaluate(`document.title = 'acted'`));
  expect(await isWaiting(lost)).toBe(true);
  await before.close();
  expect([await refused, await lost]).toEqual([
    expect.stringMatching(/^502: The lease has ended/),
    expect.stringMatching(CLOSED),
  ]);
  await expect(fetch(url)).rejects.toThrow('fetch failed');
  await using after = await serve();
  const second = await RawClient.open(`${after.url}/agent`);
  const evaluateAgain = await attachToHanded(second);
  expect(await evaluateAgain('document.title')).toBe('');
  const answer = ask(after, { message: 'Look again.' });
  const nextUrl = await handoffs.nextUrl();
  const call = evaluateAgain('1 + 1');
  expect(await isWaiting(call)).toBe(true);
  await reply(nextUrl, { status: 'done', note: 'again' });
  expect([await answer, await call]).toEqual([{ status: 'done', note: 'again' }, 2]);
  const { sessionId } = (await (await fetch(`${after.url}/agent/lease`)).json()) as { sessionId: string };
  second.close();
  await used.pool.release(sessionId, { reuse: false });
});

it('a call that the library gives up while it waits fails with the timeout of the library, and the next call works', async () => {
  const { value } = await playwright.withPooledBrowser(
    used.pool,
    async ({ page, handoff }) => {
      const asked = handoff({ message: 'Look.' });
      const url = await handoffs.nextUrl();
      const call = await settle(page.click('body', { timeout: 1000 }));
      await reply(url);
      await asked;
      return { call, next: await page.evaluate('1 + 1') };
    },
    { onEvent: handoffs.onEvent },
  );
  expect(value).toEqual({ call: expect.stringMatching(/^TimeoutError: /), next: 2 });
});
