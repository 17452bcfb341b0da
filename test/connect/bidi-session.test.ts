import { expect, it } from 'vitest';
import { withAnySession } from '../../src/connect/bidi-session.js';
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
  const played = withSession(CHROME);
  played.command(1, 'session.new', { capabilities: {} });
  await settle();
  expect(played.got).toEqual([
    {
      type: 'success',
      id: 1,
      result: {
        sessionId: 'existing',
        capabilities: {
          browserName: 'chrome',
          browserVersion: '156.0.1.2',
          userAgent: CHROME,
          platformName: '',
          acceptInsecureCerts: false,
          setWindowRect: false,
        },
      },
    },
  ]);
  expect(played.sent.slice(1)).toMatchObject([
    { method: 'browsingContext.getTree', params: { maxDepth: 0 } },
    {
      method: 'script.evaluate',
      params: { expression: 'navigator.userAgent', target: { context: 'page-1' }, awaitPromise: false },
    },
  ]);
});

it('sends its own commands with unique ids that no library uses', async () => {
  const played = withSession(CHROME);
  played.command(7, 'session.new');
  await settle();
  const [first, second] = played.sent.slice(1).map(({ id }) => id);
  expect(first).toBeGreaterThan(2 ** 40);
  expect(second).toBe(first! + 1);
  expect(Number.isSafeInteger(second)).toBe(true);
});

it('reads the version of a browser whose name is Chromium', async () => {
  const played = withSession('Mozilla/5.0 Chromium/155.1 Safari/537.36');
  played.command(1, 'session.new');
  await settle();
  expect(played.got).toMatchObject([{ result: { capabilities: { browserVersion: '155.1' } } }]);
});

it.each([
  ['is not Chromium', withSession('Mozilla/5.0 Firefox/140.0'), 'Mozilla/5.0 Firefox/140.0'],
  ['returns no text', withSession(5), ''],
  ['has no page', withSession(CHROME, []), ''],
  ['returns no list of pages', withSession(CHROME, 'none'), ''],
  ['returns a list of something else', withSession(CHROME, ['page-1']), ''],
])('uses the existing session of a browser that %s', async (_what, played, userAgent) => {
  played.command(1, 'session.new');
  await settle();
  expect(played.got).toMatchObject([
    { id: 1, result: { sessionId: 'existing', capabilities: { userAgent, browserVersion: '' } } },
  ]);
});

it('uses the existing session of a browser that refuses to describe itself', async () => {
  for (const refused of ['browsingContext.getTree', 'script.evaluate']) {
    const played = new Played(({ method }) => {
      if (method === 'session.new') return REFUSAL;
      if (method === refused) return { type: 'error', error: 'unknown error' };
      return { type: 'success', result: { contexts: [{ context: 'page-1' }] } };
    });
    played.command(1, 'session.new');
    await settle();
    expect(played.got).toMatchObject([{ id: 1, result: { capabilities: { userAgent: '' } } }]);
  }
});

it('lets the server create a session if none exists', async () => {
  const created = { type: 'success', result: { sessionId: 'new', capabilities: {} } };
  const played = new Played(({ method }) => (method === 'session.new' ? created : undefined));
  played.command(1, 'session.new');
  await settle();
  expect(played.got).toEqual([{ id: 1, ...created }]);
  expect(played.sent.map(({ method }) => method)).toEqual(['session.new']);
});

it('passes on any other refusal of session.new', async () => {
  const refused = { type: 'error', error: 'invalid argument' };
  const played = new Played(() => refused);
  played.command(1, 'session.new');
  await settle();
  expect(played.got).toEqual([{ id: 1, ...refused }]);
});

it('passes on messages of the browser during and after session.new', async () => {
  const played = withSession(CHROME);
  played.command(1, 'session.new');
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
});

it('uses the existing session although the library has sent another command', async () => {
  const played = withSession(CHROME);
  played.command(1, 'session.new');
  played.command(2, 'log.someCommand');
  await settle();
  expect(played.got).toMatchObject([{ id: 1, result: { sessionId: 'existing' } }]);
});

it('passes on unrelated messages unchanged', () => {
  const played = new Played();
  played.sayText('no JSON');
  expect(played.texts).toEqual(['no JSON']);
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

it('passes on commands unchanged, including other session commands', async () => {
  const played = new Played();
  played.command(2, 'session.subscribe', { events: ['log'] });
  played.command(3, 'script.evaluate', { expression: '"session.end"' });
  await settle();
  expect(played.sent.map(({ method }) => method)).toEqual(['session.subscribe', 'script.evaluate']);
  expect(played.got).toEqual([]);
});

it('answers session.end itself, because some servers end the browser with the session', async () => {
  const played = new Played();
  played.command(5, 'session.end');
  // The response comes only after the library waits for it.
  expect(played.got).toEqual([]);
  await settle();
  expect(played.got).toEqual([{ type: 'success', id: 5, result: {} }]);
  expect(played.sent).toEqual([]);
});

it('closes when the library closes, and notifies the library of the end', () => {
  const played = new Played();
  played.close();
  expect(played.isClosed).toBe(true);
  expect(played.end()).toBe(1);
});
