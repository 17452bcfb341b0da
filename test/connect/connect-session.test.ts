import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { connectSession, type ConnectPlan } from '../../src/connect/connect-session.js';
import type { Connection, Connector, ConnectRequest } from '../../src/connect/connector.js';
import { ConnectError, MissingLibraryError } from '../../src/index.js';
import { SpareConnection } from '../../src/net/spare-connection.js';
import { rejection } from '../pool/support.js';
import { PlayedBrowser, playPages, until } from '../support/played-browser.js';
import { useFakeClock } from '../support/fake-clock.js';

let browser: PlayedBrowser;
let requests: ConnectRequest[];
let told: string[][];

beforeEach(async () => {
  browser = await PlayedBrowser.start();
  requests = [];
  told = [];
  return () => browser[Symbol.asyncDispose]();
});

const CONNECTION: Connection<{ page: string }> = {
  handles: { page: 'a page' },
  isConnected: () => true,
  cleanup: async () => {},
  disconnect: async () => {},
};

/** Connects with a fake library that runs these steps. */
function connect(
  drive: (request: ConnectRequest) => Promise<Connection<{ page: string }>> = async () => CONNECTION,
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
    onOwnContextUsed: () => {},
    onPagesClosed: (urls) => void told.push(urls),
    additions: [],
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
