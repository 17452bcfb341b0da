import { BrowserState } from '../../src/clean/browser-state.js';
import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { connectSession } from '../../src/drivers/connect-session.js';
import type { ConnectPlan } from '../../src/drivers/connection.js';
import { trustedUrl } from '../../src/drivers/trusted-url.js';
import type { LibraryConnection, Connector, ConnectRequest } from '../../src/drivers/connector.js';
import { closeUnresponsivePages } from '../../src/clean/unresponsive-pages.js';
import { ConnectError, MissingLibraryError } from '../../src/index.js';
import { SpareConnection } from '../../src/net/spare-connection.js';
import { rejection } from '../pool/support.js';
import { useFakeClock, useRealClock } from '../support/fake-clock.js';
import { UNREACHABLE } from '../support/fake-service.js';
import { openClient, PlayedBrowser, playPages, settle, until } from '../support/played-browser.js';

let browser: PlayedBrowser;
let requests: ConnectRequest[];
let told: string[][];

beforeEach(async () => {
  browser = await PlayedBrowser.start();
  requests = [];
  told = [];
  return () => browser[Symbol.asyncDispose]();
});

const CONNECTION: LibraryConnection<{ page: string }> = {
  handles: { page: 'a page' },
  isConnected: () => true,
  cleanup: async () => {},
  disconnect: async () => {},
};

/** Connects with a fake library that runs these steps. */
function connect(
  drive: (request: ConnectRequest) => Promise<LibraryConnection<{ page: string }>> = async () => CONNECTION,
  plan: Partial<ConnectPlan['settings'] & Pick<ConnectPlan, 'signal'>> = {},
  url = browser.url,
) {
  const connector: Connector<{ page: string }> = {
    library: 'played',
    refusal: () => undefined,
    load: async () => {},
    connect: (request) => {
      requests.push(request);
      return drive(request);
    },
  };
  const granted = { id: 'session-1', session: {}, cdpUrl: url, bidiUrl: url };
  const { signal = new AbortController().signal, ...settings } = plan;
  return connectSession(connector, granted, {
    settings: {
      protocol: 'cdp',
      context: 'default',
      connectOptions: {},
      connectTimeout: 20_000,
      ...settings,
    },
    pageUrl: undefined,
    trust: { baseUrl: new URL('http://127.0.0.1/'), insecure: false, network: {} },
    spare: new SpareConnection({}),
    signal,
    state: new BrowserState({ isOwnContextGiven: true, mayReplaceOwnContext: false, onPermanent: () => {} }),
    onPagesClosed: (urls) => void told.push(urls),
    extend: () => [],
  });
}

const hang = () => new Promise<never>(() => {});

describe('a connect that succeeds', () => {
  it('passes an open socket and the options to the library, and returns its connection', async () => {
    const choices = { protocol: 'bidi', context: 'new', connectOptions: { slowMo: 1 } } as const;
    const connection = await connect(undefined, { ...choices, connectTimeout: 5000 });
    expect(requests).toMatchObject([{ ...choices, timeout: 5000 }]);
    const { handles, isConnected, disconnect } = CONNECTION;
    expect(connection).toMatchObject({ handles, isConnected, disconnect });
    requests[0]!.socket.send('open');
    await expect.poll(() => browser.received).toEqual(['open']);
    connection.cut();
    expect(await connection.ended).toBe('closed-by-us');
  });

  it('clears its timeout, stops the search for unresponsive pages, and removes its abort listener', async () => {
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
    const caller = new AbortController();
    const connection = await connect(undefined, { signal: caller.signal });
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
    expect([browser.dialled, browser.open]).toEqual([1, 1]);
    connection.cut();
    await connection.ended;
  });
});

describe('a connect that fails', () => {
  it('reports the library, the session and the cause, and leaves no socket open', async () => {
    const cause = new Error('no targets');
    const error = await rejection(connect(() => Promise.reject(cause)));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({
      message: 'played could not connect to the browser of session session-1: no targets',
      sessionId: 'session-1',
      cause,
    });
    expect(requests).toHaveLength(1);
    await expect.poll(() => browser.open).toBe(0);
    const odd = await rejection(connect(() => Promise.reject('an event')));
    expect(odd).toMatchObject({ message: expect.stringContaining('unknown failure'), cause: 'an event' });
    const long = await rejection(connect(() => Promise.reject(new Error('x'.repeat(50_000)))));
    expect(long.message.length).toBeLessThan(5000);
  });

  it('rethrows MissingLibraryError unchanged: another browser would not help', async () => {
    const missing = new MissingLibraryError('playwright-core');
    await expect(connect(() => Promise.reject(missing))).rejects.toBe(missing);
  });

  it('ends at connectTimeout, whatever the library does', async () => {
    const error = await rejection(connect(hang, { connectTimeout: 100 }));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.message).toContain('no page became usable within 100 ms');
    await expect.poll(() => browser.open).toBe(0);
  });

  it.each(['a text', 0, new Error('stop')])("rejects with the caller's reason, %s", async (reason) => {
    const caller = new AbortController();
    const connecting = rejection(connect(hang, { signal: caller.signal }));
    await expect.poll(() => requests.length).toBe(1);
    caller.abort(reason);
    expect(await connecting).toBe(reason);
    await expect.poll(() => browser.open).toBe(0);
  });

  it('detects that its socket has ended, even if the library does not', async () => {
    browser.onText = (_text, client) => client.close(1001, 'expired');
    const error = await rejection(
      connect(({ socket }) => {
        socket.send('hello');
        return hang();
      }),
    );
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.message).toContain('the WebSocket ended during the connect (expired)');
  });
});

describe('an unresponsive page', () => {
  beforeEach(() => {
    playPages(browser, { stuck: 'unresponsive' });
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
  });

  /** Advances the clock until a page counts as unresponsive and is closed. */
  async function thaw(): Promise<void> {
    await vi.advanceTimersByTimeAsync(4000);
    await until(() => browser.received.some((text) => text.includes('Runtime.evaluate')));
    await vi.advanceTimersByTimeAsync(2000);
    await until(() => told.length > 0);
    expect(told).toEqual([['https://stuck/']]);
  }

  it('can break the connect when it is closed; then the library connects again, once, over a new socket', async () => {
    const drive = async ({ socket }: ConnectRequest) => {
      if (requests[0]!.socket !== socket) return CONNECTION;
      await thaw();
      throw new Error('target closed');
    };
    const connection = await connect(drive);
    expect(requests).toHaveLength(2);
    connection.cut();
    await connection.ended;
    await until(() => browser.open === 0);
  });

  it('leads to the error of the second connect if closing the page did not help', async () => {
    const drive = async () => {
      if (requests.length === 1) await thaw();
      throw new Error(`failure ${requests.length}`);
    };
    const error = await rejection(connect(drive));
    expect(error.message).toContain('failure 2');
    expect(requests).toHaveLength(2);
  });

  it('causes no second connect after the timeout or an abort', async () => {
    const caller = new AbortController();
    const drive = async () => {
      await thaw();
      caller.abort(new Error('stop'));
      throw new Error('target closed');
    };
    const error = await rejection(connect(drive, { signal: caller.signal }));
    expect(error.message).toBe('stop');
    expect(requests).toHaveLength(1);
  });
});

describe('the URL of a session', () => {
  const FAR = 'https://pool.example.com/v1';
  const HERE = 'http://127.0.0.1:8080/v1';

  async function urlOf(cdpUrl: string, baseUrl: string, insecure = false): Promise<string> {
    const url = await trustedUrl({ id: 'session-1', session: {}, cdpUrl }, 'cdp', {
      baseUrl: new URL(baseUrl),
      insecure,
      network: {},
    });
    return url.href;
  }

  it('returns the URL of the requested protocol, and names the other one if it has none', async () => {
    const urls = { cdpUrl: 'wss://a.example.com/cdp', bidiUrl: 'wss://a.example.com/session' };
    const grant = { id: 'session-1', session: {}, ...urls };
    const trust = { baseUrl: new URL(FAR), insecure: false, network: {} };
    expect((await trustedUrl(grant, 'cdp', trust)).href).toBe(urls.cdpUrl);
    expect((await trustedUrl(grant, 'bidi', trust)).href).toBe(urls.bidiUrl);
    const { bidiUrl: _bidi, ...onlyCdp } = grant;
    const error = await rejection(trustedUrl(onlyCdp, 'bidi', trust));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.message).toBe("The session has no WebDriver BiDi URL. Use protocol 'cdp'.");
  });

  it.each([
    ['wss://far.example.com/cdp?jwt=x', FAR],
    ['wss://far.example.com/cdp?jwt=x', HERE],
    ['wss://127.0.0.1:1/', FAR],
    ['ws://127.0.0.1:1/', HERE],
    ['ws://localhost:1/', 'http://[::1]:8080/'],
    ['ws://[::1]:1/', 'http://localhost:8080/'],
    ['ws://127.255.0.3:1/', HERE],
    ['ws://127.0.0.1:1/', 'local:pool'],
  ])('accepts %s from a service at %s', async (url, baseUrl) => {
    expect(await urlOf(url, baseUrl)).toBe(url);
  });

  it.each([
    ['nowhere', HERE, /is not a URL/],
    ['ftp://127.0.0.1:1/', HERE, /is not a WebSocket URL/],
    ['wss://user@far.example.com/', FAR, /user name or a password/],
    ['wss://:pass@far.example.com/', FAR, /user name or a password/],
    ['ws://user:pass@127.0.0.1:1/', HERE, /user name or a password/],
    ['ws://far.example.com/', FAR, /not encrypted/],
    ['ws://far.example.com/', HERE, /not encrypted/],
    ...['127.0.0.1.example.com', 'localhost.example.com', '128.0.0.1', '0.0.0.0', '10.0.0.1', '[::]'].map(
      (host): [string, string, RegExp] => [`ws://${host}/`, HERE, /not encrypted/],
    ),
    ['ws://127.0.0.1:1/', FAR, /points to this machine, but the service is elsewhere/],
  ])('refuses %s from a service at %s', async (url, baseUrl, why) => {
    const error = await rejection(urlOf(url, baseUrl));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ sessionId: 'session-1', message: expect.stringMatching(why) });
    expect(error.message).toMatch(/^The session's CDP URL/);
  });

  it('sends nothing to the http address of a debugging port that it does not trust, and lets the port choose only a path', async () => {
    let requests = 0;
    let named = 'ws://elsewhere.example:1/devtools/browser/id?a=b';
    const server = createServer((_request, response) => {
      requests++;
      response.end(JSON.stringify({ webSocketDebuggerUrl: named }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    await expect(urlOf(url, FAR)).rejects.toThrow(/points to this machine/);
    await expect(urlOf(`http://user@127.0.0.1:${port}`, HERE)).rejects.toThrow(/user name/);
    expect(requests).toBe(0);
    expect(await urlOf(`${url}/base/?c=d#e`, HERE)).toBe(`ws://127.0.0.1:${port}/devtools/browser/id?a=b`);
    for (named of ['foo:.evil.example/', 'foo:@evil.example/', 'http://a/', 'nothing'])
      await expect(urlOf(url, HERE), named).rejects.toThrow(/names no WebSocket/);
    server.closeAllConnections();
    server.close();
  });

  it('accepts a URL that is not encrypted from a service in a private network, with the option insecure', async () => {
    expect(await urlOf('ws://10.0.0.7:9222/', 'http://10.0.0.1/', true)).toBe('ws://10.0.0.7:9222/');
    await expect(urlOf('ws://user@10.0.0.7/', 'http://10.0.0.1/', true)).rejects.toThrow(/user name/);
  });
});

describe('the search for unresponsive pages', () => {
  let browser: PlayedBrowser;
  let told: string[][];

  beforeEach(async () => {
    browser = await PlayedBrowser.start();
    told = [];
    useFakeClock({ toFake: ['setTimeout', 'clearTimeout'] });
    return async () => {
      useRealClock();
      await browser[Symbol.asyncDispose]();
    };
  });

  function watch(connectTimeout = 30_000, url = browser.url) {
    const open = (signal: AbortSignal) => openClient(new URL(url), signal);
    return closeUnresponsivePages(open, connectTimeout, (urls) => told.push(urls));
  }

  /** Watches a connect that is slow enough for the check. */
  async function watchSlowConnect() {
    const pages = watch();
    await vi.advanceTimersByTimeAsync(4000);
    return pages;
  }

  function expectNothingClosed(pages: ReturnType<typeof watch>): void {
    expect(sent('Target.closeTarget')).toEqual([]);
    expect(told).toEqual([]);
    expect(pages.wereClosed()).toBe(false);
  }

  const commands = () => browser.received.map((text) => JSON.parse(text) as Record<string, unknown>);
  const sent = (method: string) => commands().filter((command) => command['method'] === method);

  it.each([
    [3000, 1000],
    [30_000, 4000],
  ])('starts when a connect with a timeout of %i ms has taken %i ms', async (connectTimeout, slow) => {
    const pages = watch(connectTimeout);
    await vi.advanceTimersByTimeAsync(slow - 1);
    expect(browser.dialled).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    await until(() => browser.dialled === 1);
    pages.stop();
    await until(() => browser.open === 0);
  });

  it('closes the pages that do not respond, and reports their URLs', async () => {
    playPages(browser, { good: 'answers', stuck: 'unresponsive', other: 'unresponsive' });
    const pages = await watchSlowConnect();
    // The page that answers has no timer any more.
    await until(() => sent('Runtime.evaluate').length === 3 && vi.getTimerCount() === 2);
    await vi.advanceTimersByTimeAsync(1999);
    await settle();
    expect(sent('Target.closeTarget')).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await until(() => told.length > 0);
    expect(told).toEqual([['https://stuck/', 'https://other/']]);
    expect(sent('Target.closeTarget').map(({ params }) => params)).toEqual([
      { targetId: 'stuck' },
      { targetId: 'other' },
    ]);
    expect(pages.wereClosed()).toBe(true);
    await until(() => browser.open === 0);
  });

  it('reports the pages that it has closed, if another one has closed itself meanwhile', async () => {
    playPages(browser, { gone: 'unresponsive', stuck: 'unresponsive' });
    const answer = browser.onText;
    browser.onText = (text, client) => {
      const { id, method, params } = JSON.parse(text);
      if (method !== 'Target.closeTarget' || params.targetId !== 'gone') return answer(text, client);
      return client.send(JSON.stringify({ id, error: { message: 'No target with given id found' } }));
    };
    await watchSlowConnect();
    await until(() => sent('Runtime.evaluate').length === 2);
    await vi.advanceTimersByTimeAsync(2000);
    await until(() => browser.open === 0);
    expect(told).toEqual([['https://stuck/']]);
  });

  it('checks each page over its own session, and no worker; it closes no responsive page', async () => {
    playPages(browser, { one: 'answers', two: 'answers' });
    const pages = await watchSlowConnect();
    await until(() => sent('Runtime.evaluate').length === 2);
    await until(() => browser.open === 0);
    expect(sent('Target.attachToTarget').map(({ params }) => params)).toEqual([
      { targetId: 'one', flatten: true },
      { targetId: 'two', flatten: true },
    ]);
    expect(sent('Runtime.evaluate')).toMatchObject([
      { sessionId: 'session of one', params: { expression: '0' } },
      { sessionId: 'session of two', params: { expression: '0' } },
    ]);
    const ids = commands().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expectNothingClosed(pages);
    // The client learns after the browser that its socket is closed.
    await until(() => vi.getTimerCount() === 0);
  });

  it('closes no page whose answer arrived while the event loop was blocked', async () => {
    const pages = Array.from({ length: 30 }, (_page, index) => [`page-${index}`, 'answers'] as const);
    playPages(browser, Object.fromEntries(pages));
    const answer = browser.onText;
    browser.onText = (text, client) => {
      answer(text, client);
      // The timers fire before the client reads the last answers.
      if (sent('Runtime.evaluate').length === pages.length) vi.advanceTimersByTime(10_000);
    };
    await watchSlowConnect();
    await until(() => sent('Runtime.evaluate').length === pages.length);
    await until(() => browser.open === 0);
    expect(sent('Target.closeTarget')).toEqual([]);
    expect(told).toEqual([]);
  });

  it('closes nothing after the connect has ended', async () => {
    playPages(browser, { stuck: 'unresponsive' });
    const pages = await watchSlowConnect();
    await until(() => sent('Runtime.evaluate').length === 1);
    pages.stop();
    await until(() => browser.open === 0);
    await vi.advanceTimersByTimeAsync(5000);
    await settle();
    expectNothingClosed(pages);
  });

  it('ends without an error when the browser refuses, disconnects or is unreachable', async () => {
    const refuse = (text: string) => JSON.stringify({ id: JSON.parse(text).id, error: {} });
    browser.onText = (text, client) => client.send(refuse(text));
    await watchSlowConnect();
    await until(() => browser.received.length === 1);
    await until(() => browser.open === 0);
    browser.onText = (_text, client) => client.terminate();
    await watchSlowConnect();
    await until(() => browser.received.length === 2);
    await until(() => browser.open === 0);
    watch(30_000, UNREACHABLE.replace('http', 'ws'));
    await vi.advanceTimersByTimeAsync(4000);
    await settle();
    expect(told).toEqual([]);
  });
});
