import { existsSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Browser, ConnectOptions } from 'puppeteer-core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ConnectRequest } from '../../src/drivers/connector.js';
import { Contexts } from '../../src/drivers/contexts.js';
import { playwright } from '../../src/drivers/playwright.js';
import { puppeteer } from '../../src/drivers/puppeteer.js';
import type { ClientSocket, SocketEnd } from '../../src/drivers/socket.js';
import { createTemporaryFolder } from '../../src/shared/connection-folder.js';
import { socketTransport, type Transport, withAnySession } from '../../src/drivers/transport.js';
import { InvalidOptionError } from '../../src/index.js';
import { rejection } from '../pool/support.js';
import { PlayedBrowser, settle } from '../support/played-browser.js';

describe('a connector', () => {
  // What a real browser does not do on demand. The other tests of the connectors use real browsers.
  let far: PlayedBrowser;
  let socket: ClientSocket;
  let exitListeners: unknown[];

  beforeEach(async () => {
    exitListeners = process.listeners('exit');
    far = await PlayedBrowser.start();
    ({ socket } = await far.connect());
  });

  afterEach(async () => {
    socket.cut('closed-by-us');
    await socket.ended;
    await far[Symbol.asyncDispose]();
    // The folder of a connection is removed after its socket has ended.
    await expect.poll(() => process.listeners('exit')).toEqual(exitListeners);
  });

  function request(choices: Partial<ConnectRequest> = {}): ConnectRequest {
    const defaults = {
      protocol: 'cdp',
      context: 'default',
      connectOptions: {},
      timeout: 1000,
      endReason: 'over',
      onOwnContextUsed: () => {},
      replacesOwnContext: async () => false,
    } as const;
    const endpoint = async () => 'ws://here/';
    const openClient = async () => socket;
    return {
      socket,
      pageUrl: undefined,
      endpoint,
      openClient,
      sharedEndpoint: endpoint,
      ...defaults,
      ...choices,
    };
  }

  it.each([
    ['is the reason of the failure', true, 'unknown time zone', InvalidOptionError],
    ['may not be: the browser is gone', true, 'Target page, context or browser has been closed', Error],
    ['may not be: the connection is lost', false, 'unknown time zone', Error],
  ])('an option of a new context %s', async (_what, isConnected, message, expected) => {
    const library = { check: () => {}, newContext: () => Promise.reject(new Error(message)) };
    const contexts = new Contexts(library as never, {
      browser: {},
      own: {} as never,
      isConnected: () => isConnected,
    });
    const error = await rejection(contexts.open('new', {}));
    expect(error.constructor).toBe(expected);
    expect(error.message).toContain(message);
  });

  describe('Playwright', () => {
    /** Returns the options of a connect that fails. */
    async function optionsOf(connectOptions: object): Promise<Record<string, unknown>> {
      const calls: [string, object][] = [];
      const connectOverCDP = (url: string, options: object) => {
        calls.push([url, options]);
        return Promise.reject(new Error('no targets'));
      };
      const connector = playwright({ chromium: { connectOverCDP } as never });
      await rejection(connector.connect(request({ connectOptions })));
      expect(calls).toEqual([['ws://here/', expect.anything()]]);
      return calls[0]![1] as Record<string, unknown>;
    }

    it("receives the caller's connectOptions, without the default timeout of Playwright", async () => {
      const { artifactsDir, ...options } = await optionsOf({ slowMo: 7 });
      expect(options).toEqual({ slowMo: 7, timeout: 0 });
      expect(await optionsOf({ timeout: 1 })).toMatchObject({ timeout: 1 });
      expect(dirname(artifactsDir as string)).toBe(tmpdir());
      expect(basename(artifactsDir as string)).toMatch(/^pooled-browser-artifacts-/);
    });

    it('names the Inspector, which needs a browser here, if a connect fails while PWDEBUG is set', async () => {
      const connectOverCDP = () => Promise.reject(new Error('No browser found on the system.'));
      const connector = playwright({ chromium: { connectOverCDP } });
      const connect = async () => (await rejection(connector.connect(request({})))).message;
      expect(await connect()).toBe('No browser found on the system.');
      vi.stubEnv('PWDEBUG', '1');
      expect(await connect()).toMatch(
        /^No browser found.*\nPWDEBUG is set: Playwright also opens its Inspector/,
      );
      vi.unstubAllEnvs();
    });

    it('stores its files in a folder that is removed with the connection, also after a failed connect', async () => {
      const artifactsDir = (await optionsOf({}))['artifactsDir'] as string;
      await writeFile(join(artifactsDir, 'download'), 'bytes');
      socket.cut('closed-by-us');
      await expect.poll(() => existsSync(artifactsDir)).toBe(false);
    });

    it('leaves no folder when the process ends first, or when the folder was removed before', async () => {
      for (const isGone of [false, true]) {
        let end!: (how: SocketEnd) => void;
        const ended = new Promise<SocketEnd>((resolve) => (end = resolve));
        const { path, removed } = await createTemporaryFolder({ ended });
        await writeFile(join(path, 'download'), 'bytes');
        if (isGone) rmSync(path, { recursive: true });
        process.listeners('exit').find((listener) => !exitListeners.includes(listener))!(0);
        expect(existsSync(path)).toBe(false);
        end('dropped');
        await removed;
        expect(process.listeners('exit')).toEqual(exitListeners);
      }
    });
  });

  describe('Puppeteer', () => {
    class Page {
      isGone = false;
      readonly isClosed = () => this.isGone;
      readonly url = () => 'about:blank';
      readonly close = async () => void (this.isGone = true);
    }

    class Context {
      readonly all: object[] = [];
      readonly targets = () => [...this.all];
      readonly newPage = async () => this.add().handle;
      readonly on = () => this;

      /** @param onPage Called when the connector requests the page. */
      add(type = 'page', onPage?: () => Page | null) {
        const handle = new Page();
        const page = async () => (onPage ? onPage() : handle);
        const target = { handle, type: () => type, url: handle.url, browserContext: () => this, page };
        this.all.push(target);
        return target;
      }
    }

    /** Connects to a browser with this context. `onWait` is called when the connector waits for a page. */
    async function connect(own: Context, onWait: (isPage: (target: object) => boolean) => void = () => {}) {
      const browser = {
        defaultBrowserContext: () => own,
        browserContexts: () => [own],
        waitForTarget: async (isPage: (target: object) => boolean) => onWait(isPage),
      };
      const connector = puppeteer({ puppeteer: { connect: async () => browser as unknown as Browser } });
      const { handles, cleanup } = await connector.connect(request());
      return { page: handles.page as unknown as Page, cleanup };
    }

    it.each([
      ['cdp', 'cdp'],
      ['bidi', 'webDriverBiDi'],
    ] as const)(
      'receives connectOptions over %s, except those that would bypass our socket',
      async (ours, theirs) => {
        const calls: ConnectOptions[] = [];
        const library = {
          connect: (options: ConnectOptions) => {
            calls.push(options);
            return Promise.reject(new Error('no targets'));
          },
        };
        const connector = puppeteer({ puppeteer: library });
        await rejection(connector.connect(request({ protocol: ours })));
        const connectOptions = { slowMo: 3, defaultViewport: { width: 1 }, protocol: 'x', transport: 'y' };
        await rejection(connector.connect(request({ protocol: ours, connectOptions })));
        expect(calls).toMatchObject([
          { defaultViewport: null, protocol: theirs },
          { slowMo: 3, defaultViewport: { width: 1 }, protocol: theirs },
        ]);
        calls[1]!.transport!.send('{"id":1}');
        await expect.poll(() => far.received).toEqual(['{"id":1}']);
      },
    );

    it('uses a page that it detects late, which stays open', async () => {
      const own = new Context();
      own.add('worker');
      let isPage!: (target: object) => boolean;
      const { page, cleanup } = await connect(own, (predicate) => {
        isPage = predicate;
        own.add();
      });
      const [worker, late] = own.all as ReturnType<Context['add']>[];
      expect(page).toBe(late!.handle);
      await cleanup();
      expect(page.isGone).toBe(false);
      expect(own.all).toHaveLength(2);
      expect([late!, worker!, new Context().add()].map(isPage)).toEqual([true, false, false]);
    });

    it('uses a new page if no page appears, or no page is usable', async () => {
      const empty = new Context();
      expect((await connect(empty)).page).toBe((empty.all[0] as ReturnType<Context['add']>).handle);
      // One page fails during its setup, and one closes during its setup.
      const own = new Context();
      own.add('page', () => null);
      const closing = own.add('page', () => {
        own.all.splice(own.all.indexOf(closing), 1);
        return closing.handle;
      });
      const last = own.add();
      expect((await connect(own)).page).toBe(last.handle);
    });
  });
});

describe('the transport of a library', () => {
  let browser: PlayedBrowser;

  beforeEach(async () => {
    browser = await PlayedBrowser.start();
    return () => browser[Symbol.asyncDispose]();
  });

  it('passes text in both directions', async () => {
    const { socket, client } = await browser.connect();
    const transport = socketTransport(socket, 'cdp');
    const got: unknown[] = [];
    transport.onmessage = (message) => got.push(message);
    transport.send('{"id":1}');
    client.send('{"id":1,"result":{}}');
    await expect.poll(() => got).toEqual(['{"id":1,"result":{}}']);
    await expect.poll(() => browser.received).toEqual(['{"id":1}']);
  });

  it('accepts messages before Puppeteer listens, and after the end', async () => {
    const { socket, client } = await browser.connect();
    const transport = socketTransport(socket, 'cdp');
    client.send('{"method":"A.early"}');
    client.send('{"method":"A.early"}', () => client.close(1001));
    expect(await socket.ended).toBe('closed-by-service');
    // There is no close listener either.
    await settle();
    expect(() => transport.send('{"id":1}')).toThrow('ended');
  });

  it.each([
    ['cdp', 'Browser.close'],
    ['bidi', 'browser.close'],
  ] as const)(
    'closes the connection when Puppeteer closes it, and when the callback closes the browser over %s',
    async (protocol, method) => {
      const closing = (await browser.connect()).socket;
      socketTransport(closing, protocol).close();
      expect(await closing.ended).toBe('closed-by-callback');
      const { socket } = await browser.connect();
      socketTransport(socket, protocol).send(JSON.stringify({ id: 1, method, params: {} }));
      expect(await socket.ended).toBe('closed-by-callback');
      expect(browser.received).toEqual([]);
    },
  );

  it.each([
    ['cdp', { method: 'browser.close' }],
    ['bidi', { method: 'Browser.close' }],
    ['cdp', { method: 'Page.close' }],
    // A script may contain the name of the command. Commands that close the browser are short.
    ['cdp', { method: 'Runtime.evaluate', params: { expression: `"Browser.close"${' '.repeat(200)}` } }],
  ] as const)('sends other messages over %s: %j', async (protocol, command) => {
    const { socket } = await browser.connect();
    const text = JSON.stringify(command).replaceAll('\\"', '"');
    socketTransport(socket, protocol).send(text);
    await expect.poll(() => browser.received).toEqual([text]);
  });

  it('notifies the lease of the end before Puppeteer, whose error would hide the reason', async () => {
    const { socket, client } = await browser.connect();
    const transport = socketTransport(socket, 'cdp');
    const order: string[] = [];
    transport.onclose = () => order.push('driver');
    void socket.ended.then(async () => {
      for (let count = 0; count < 10; count++) await Promise.resolve();
      order.push('lease');
    });
    client.terminate();
    await expect.poll(() => order).toEqual(['lease', 'driver']);
    expect(() => transport.send('{"id":1}')).toThrow('ended');
  });

  describe('a BiDi connection', () => {
    interface Message {
      id: number;
      method: string;
      params: Record<string, unknown>;
    }

    type Answer = (message: Message) => object | undefined;

    /** A server in memory. `answer` returns the response to a command, without its id; undefined for none. */
    function play(answer: Answer = () => undefined) {
      const sent: Message[] = [];
      const got: unknown[] = [];
      const say = (message: object) => void inner.onmessage?.(JSON.stringify(message));
      const send = (text: string) => {
        const message = JSON.parse(text) as Message;
        sent.push(message);
        const said = answer(message);
        if (said) queueMicrotask(() => say({ id: message.id, ...said }));
      };
      const inner: Transport = { send, close: vi.fn() };
      const outer = withAnySession(inner);
      outer.onmessage = (text) => got.push(text === 'no JSON' ? text : JSON.parse(text));
      const command = (id: number, method: string, params = {}) =>
        outer.send(JSON.stringify({ id, method, params }));
      /** Sends `session.new`, and waits for everything under way. */
      const newSession = async () => {
        command(1, 'session.new', { capabilities: {} });
        await settle();
      };
      return { sent, got, inner, outer, say, command, newSession };
    }

    const CHROME = 'Mozilla/5.0 (X11) HeadlessChrome/156.0.1.2 Safari/537.36';
    const REFUSED = { type: 'error', error: 'unknown error' };
    const VALUES: Record<string, object> = {
      'session.new': { type: 'error', error: 'session not created', message: 'one exists' },
      'browsingContext.getTree': { type: 'success', result: { contexts: [{ context: 'page-1' }] } },
    };
    const textOf = (value: unknown) => ({ type: 'success', result: { result: { type: 'string', value } } });

    /** A server with a session, and with other answers than those of a Chrome with a page. */
    const withSession = (others: Record<string, object> = {}) =>
      play(({ method }) => ({ 'script.evaluate': textOf(CHROME), ...VALUES, ...others })[method]);

    it('uses the session that exists already, and reports the browser to the library', async () => {
      const { sent, got, newSession } = withSession();
      await newSession();
      const capabilities = {
        browserName: 'chrome',
        browserVersion: '156.0.1.2',
        userAgent: CHROME,
        platformName: '',
        acceptInsecureCerts: false,
        setWindowRect: false,
      };
      expect(got).toEqual([{ type: 'success', id: 1, result: { sessionId: 'existing', capabilities } }]);
      const target = { context: 'page-1' };
      expect(sent.slice(1)).toMatchObject([
        { method: 'browsingContext.getTree', params: { maxDepth: 0 } },
        {
          method: 'script.evaluate',
          params: { expression: 'navigator.userAgent', target, awaitPromise: false },
        },
      ]);
      // Ids that no library uses.
      for (const { id } of sent.slice(1)) expect(id > 2 ** 30 && Number.isSafeInteger(id)).toBe(true);
    });

    const FIREFOX = 'Mozilla/5.0 Firefox/140.0';
    it.each([
      ['returns no text', { 'script.evaluate': textOf(5) }, ''],
      ['refuses to evaluate a script', { 'script.evaluate': REFUSED }, ''],
      [
        'returns a long text, of which the search for a name would take long',
        { 'script.evaluate': textOf('Chrom'.repeat(60_000)) },
        'Chrom'.repeat(200),
      ],
      ['has no page', { 'browsingContext.getTree': { result: { contexts: [] } } }, ''],
    ])('uses the existing session of a browser that %s', async (_what, others, userAgent) => {
      const { got, newSession } = withSession(others);
      await newSession();
      const capabilities = { userAgent, browserVersion: '' };
      expect(got).toMatchObject([{ id: 1, result: { sessionId: 'existing', capabilities } }]);
    });

    it('reports Firefox to the library as Firefox', async () => {
      const { got, newSession } = withSession({ 'script.evaluate': textOf(FIREFOX) });
      await newSession();
      const capabilities = { browserName: 'firefox', browserVersion: '140.0', userAgent: FIREFOX };
      expect(got).toMatchObject([{ id: 1, result: { sessionId: 'existing', capabilities } }]);
    });

    it('passes on the refusal of a browser whose session is that of another connection', async () => {
      const { got, newSession } = withSession({ 'browsingContext.getTree': REFUSED });
      await newSession();
      expect(got).toEqual([{ id: 1, ...VALUES['session.new'] }]);
    });

    it.each([
      ['the new session of a server without one', { type: 'success', result: { sessionId: 'new' } }],
      ['any other refusal', { type: 'error', error: 'invalid argument' }],
    ])('passes on %s', async (_what, answer) => {
      const { sent, got, newSession } = play(() => answer);
      await newSession();
      expect(got).toEqual([{ id: 1, ...answer }]);
      expect(sent).toHaveLength(1);
    });

    it('passes on the messages of the browser during and after session.new', async () => {
      const { inner, got, say, newSession } = withSession();
      const messages = [{ method: 'log.entryAdded' }, { type: 'success', id: 99, result: {} }];
      const opening = newSession();
      messages.forEach(say);
      await opening;
      expect(got).toMatchObject([...messages, { id: 1, result: { sessionId: 'existing' } }]);
      // The id of an answered command may be used again: it no longer belongs to session.new.
      say({ id: 1, error: 'session not created' });
      expect(got.at(-1)).toEqual({ id: 1, error: 'session not created' });
      // A later message, which may be large, is not parsed.
      inner.onmessage?.('no JSON');
      expect(got.at(-1)).toBe('no JSON');
    });

    it.each([
      ['in use', withSession()],
      ['refused', play(() => REFUSED)],
    ])(
      'accepts messages after Puppeteer has removed its listeners, with a session that is %s',
      async (_how, played) => {
        const { outer, inner, got, say, command } = played;
        command(1, 'session.new');
        command(2, 'session.end');
        delete outer.onmessage;
        inner.onclose?.();
        say({ method: 'log.entryAdded' });
        await settle();
        say({ method: 'log.entryAdded' });
        expect(got).toEqual([]);
      },
    );

    it('answers session.end itself, because some servers would end the browser, and sends all other commands', async () => {
      const { sent, got, command } = play();
      command(2, 'session.subscribe', { events: ['log'] });
      command(3, 'script.evaluate', { expression: '"session.end"' });
      command(5, 'session.end');
      // The response comes only after the library waits for it.
      expect(got).toEqual([]);
      await settle();
      expect(got).toEqual([{ type: 'success', id: 5, result: {} }]);
      expect(sent.map(({ method }) => method)).toEqual(['session.subscribe', 'script.evaluate']);
    });

    it('closes when the library closes, and notifies the library of the end', () => {
      const { inner, outer } = play();
      outer.close();
      expect(inner.close).toHaveBeenCalledOnce();
      outer.onclose = vi.fn();
      inner.onclose?.();
      expect(outer.onclose).toHaveBeenCalledOnce();
    });
  });
});
