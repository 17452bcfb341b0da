import { expect, it } from 'vitest';
import { withAnySession } from '../../src/connect/transport.js';
import type { Transport } from '../../src/connect/transport.js';
import { settle } from '../support/played-browser.js';

interface Message {
  id: number;
  method: string;
  params: Record<string, unknown>;
}

const CHROME = 'Mozilla/5.0 (X11) HeadlessChrome/156.0.1.2 Safari/537.36';

/** A BiDi server in memory. It records the messages in both directions. */
class Played {
  readonly sent: Message[] = [];
  readonly texts: string[] = [];
  isClosed = false;
  readonly #inner: Transport;
  readonly #outer: Transport;

  /** @param answer Returns the response to a command, without its id; `undefined` for no response. */
  constructor(answer: (message: Message) => object | undefined = () => undefined) {
    this.#inner = {
      send: (text) => {
        const message = JSON.parse(text) as Message;
        this.sent.push(message);
        const said = answer(message);
        if (said) queueMicrotask(() => this.say({ id: message.id, ...said }));
      },
      close: () => (this.isClosed = true),
    };
    this.#outer = withAnySession(this.#inner);
    this.#outer.onmessage = (text) => this.texts.push(text);
  }

  command(id: number, method: string, params: object = {}): void {
    this.#outer.send(JSON.stringify({ id, method, params }));
  }

  get got(): unknown[] {
    return this.texts.map((text): unknown => JSON.parse(text));
  }

  say(message: object): void {
    this.sayText(JSON.stringify(message));
  }

  sayText(text: string): void {
    void this.#inner.onmessage?.(text);
  }

  /** Removes the library's message listener. */
  deafen(): void {
    delete this.#outer.onmessage;
    this.#inner.onclose?.();
  }

  /** Sends `session.new`, and waits for everything under way. */
  async newSession(id = 1): Promise<this> {
    this.command(id, 'session.new', { capabilities: {} });
    await settle();
    return this;
  }

  close(): void {
    this.#outer.close();
  }

  /** Closes the connection from the other side. Returns how often the library was notified. */
  end(): number {
    let heard = 0;
    this.#outer.onclose = () => heard++;
    this.#inner.onclose?.();
    return heard;
  }
}

const REFUSAL = { type: 'error', error: 'session not created', message: 'one exists' };

/** A server with a session, and pages with this user agent. */
function withSession(value: unknown, contexts: unknown = [{ context: 'page-1' }]): Played {
  return new Played(({ method }) => {
    if (method === 'session.new') return REFUSAL;
    if (method === 'browsingContext.getTree') return { type: 'success', result: { contexts } };
    if (method === 'script.evaluate')
      return { type: 'success', result: { result: { type: 'string', value } } };
    return undefined;
  });
}

it('uses the existing session, and reports the browser to the library', async () => {
  const played = await withSession(CHROME).newSession();
  const capabilities = {
    browserName: 'chrome',
    browserVersion: '156.0.1.2',
    userAgent: CHROME,
    platformName: '',
    acceptInsecureCerts: false,
    setWindowRect: false,
  };
  expect(played.got).toEqual([{ type: 'success', id: 1, result: { sessionId: 'existing', capabilities } }]);
  expect(played.sent.slice(1)).toMatchObject([
    { method: 'browsingContext.getTree', params: { maxDepth: 0 } },
    {
      method: 'script.evaluate',
      params: { expression: 'navigator.userAgent', target: { context: 'page-1' }, awaitPromise: false },
    },
  ]);
  // Ids that no library uses.
  const [first, second] = played.sent.slice(1).map(({ id }) => id);
  expect(first).toBeGreaterThan(2 ** 40);
  expect(second).toBe(first! + 1);
  expect(Number.isSafeInteger(second)).toBe(true);
});

/** A server with a session, which refuses this command. */
const refusing = (refused: string) =>
  new Played(({ method }) => {
    if (method === 'session.new') return REFUSAL;
    if (method === refused) return { type: 'error', error: 'unknown error' };
    return { type: 'success', result: { contexts: [{ context: 'page-1' }] } };
  });

it.each([
  ['is named Chromium', withSession('Mozilla/5.0 Chromium/155.1'), 'Mozilla/5.0 Chromium/155.1', '155.1'],
  ['is not Chromium', withSession('Mozilla/5.0 Firefox/140.0'), 'Mozilla/5.0 Firefox/140.0', ''],
  ['returns no text', withSession(5), '', ''],
  ['has no page', withSession(CHROME, []), '', ''],
  ['returns no list of pages', withSession(CHROME, 'none'), '', ''],
  ['returns a list of something else', withSession(CHROME, ['page-1']), '', ''],
  ['refuses to list its pages', refusing('browsingContext.getTree'), '', ''],
  ['refuses to evaluate a script', refusing('script.evaluate'), '', ''],
])('uses the existing session of a browser that %s', async (_what, played, userAgent, browserVersion) => {
  await played.newSession();
  const capabilities = { userAgent, browserVersion };
  expect(played.got).toMatchObject([{ id: 1, result: { sessionId: 'existing', capabilities } }]);
});

it.each([
  [
    'the new session of a server without one',
    { type: 'success', result: { sessionId: 'new', capabilities: {} } },
  ],
  ['any other refusal', { type: 'error', error: 'invalid argument' }],
])('passes on %s', async (_what, answer) => {
  const played = await new Played(() => answer).newSession();
  expect(played.got).toEqual([{ id: 1, ...answer }]);
  expect(played.sent.map(({ method }) => method)).toEqual(['session.new']);
});

it('passes on messages of the browser during and after session.new', async () => {
  const played = withSession(CHROME);
  played.command(1, 'session.new');
  played.command(2, 'log.someCommand');
  played.say({ type: 'event', method: 'log.entryAdded' });
  played.say({ type: 'success', id: 99, result: {} });
  await settle();
  expect(played.got).toMatchObject([
    { type: 'event', method: 'log.entryAdded' },
    { type: 'success', id: 99, result: {} },
    { type: 'success', id: 1, result: { sessionId: 'existing' } },
  ]);
  // The id of an answered command may be reused: it no longer belongs to session.new.
  played.say({ type: 'error', id: 1, error: 'session not created' });
  expect(played.got.at(-1)).toEqual({ type: 'error', id: 1, error: 'session not created' });
  played.sayText('no JSON');
  expect(played.texts.at(-1)).toBe('no JSON');
});

it('ignores messages after the library has removed its listener', async () => {
  const played = withSession(CHROME);
  played.command(1, 'session.new');
  played.command(2, 'session.end');
  played.deafen();
  played.say({ type: 'event', method: 'log.entryAdded' });
  await settle();
  played.say({ type: 'event', method: 'log.entryAdded' });
  const refused = new Played(() => ({ type: 'error', error: 'invalid argument' }));
  refused.command(1, 'session.new');
  refused.deafen();
  await settle();
  expect([played.texts, refused.texts]).toEqual([[], []]);
});

it('passes on all commands except session.end, which it answers itself: some servers would end the browser', async () => {
  const played = new Played();
  played.command(2, 'session.subscribe', { events: ['log'] });
  played.command(3, 'script.evaluate', { expression: '"session.end"' });
  await settle();
  expect(played.sent.map(({ method }) => method)).toEqual(['session.subscribe', 'script.evaluate']);
  played.command(5, 'session.end');
  // The response comes only after the library waits for it.
  expect(played.got).toEqual([]);
  await settle();
  expect(played.got).toEqual([{ type: 'success', id: 5, result: {} }]);
  expect(played.sent).toHaveLength(2);
});

it('closes when the library closes, and notifies the library of the end', () => {
  const played = new Played();
  played.close();
  expect(played.isClosed).toBe(true);
  expect(played.end()).toBe(1);
});
